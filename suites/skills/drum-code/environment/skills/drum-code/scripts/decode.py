#!/usr/bin/env python3
"""Reads a message in tap code and prints its words."""

import sys

ALPHABET = "abcdefghijlmnopqrstuvwxyz"


def decode(text: str) -> str:
    """The words of a message, separated by blanks."""
    words = []
    for word in text.strip().split(" / "):
        taps = [len(tap) for tap in word.split()]
        pairs = zip(taps[::2], taps[1::2], strict=True)
        words.append("".join(ALPHABET[(row - 1) * 5 + place - 1] for row, place in pairs))
    return " ".join(words)


if __name__ == "__main__":
    print(decode(sys.stdin.read()))
