#!/bin/bash
set -e
python3 - <<'END'
from pathlib import Path

ALPHABET = "abcdefghijlmnopqrstuvwxyz"
for path in Path("/data/messages").glob("*.tap"):
    words = []
    for word in path.read_text().strip().split(" / "):
        taps = [len(tap) for tap in word.split()]
        pairs = zip(taps[::2], taps[1::2])
        words.append("".join(ALPHABET[row * 5 + place - 6] for row, place in pairs))
    *words, check = words
    number = sum(ALPHABET.index(word[0]) for word in words) % 25
    text = " ".join(words) if check == ALPHABET[number] * 3 else "DAMAGED"
    Path("/output", f"{path.stem}.txt").write_text(text + "\n")
END
