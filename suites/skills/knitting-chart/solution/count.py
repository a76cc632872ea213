"""Counts the stitches of the shawl."""

import re
from pathlib import Path

TAKES_LEAVES = {"yo": (0, 1), "k2tog": (2, 1), "ssk": (2, 1)}


def stitches(text):
    """What a row takes and leaves."""
    text = re.sub(r"\*(.*?)\* x(\d+)", lambda m: ", ".join([m[1]] * int(m[2])), text)
    takes = leaves = 0
    for part in text.split(", "):
        plain = re.fullmatch(r"[kp](\d+)", part)
        taken, left = (int(plain[1]),) * 2 if plain else TAKES_LEAVES[part]
        takes, leaves = takes + taken, leaves + left
    return takes, leaves


first, *rows = Path("/data/shawl.txt").read_text().splitlines()
needle = int(first.split()[-1])
lines = ["row,before,after"]
for row in rows:
    number, text = row.split(": ")
    takes, leaves = stitches(text)
    lines.append(f"{number},{needle},{leaves if takes == needle else '-'}")
    if takes != needle:
        break
    needle = leaves
Path("/data/counts.csv").write_text("\n".join(lines) + "\n")
