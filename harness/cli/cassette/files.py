"""The cassettes that a command is given, and places in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.numbers import count
from harness.errors import BadInputError

FOLDER = Path("cassettes")
_MOST_RANGES = 6


def cassettes_in(path: Path) -> list[Path]:
    """The cassettes of a folder, or the one that is named.

    Raises:
        BadInputError: there is nothing of that name.
    """
    if not path.exists():
        raise BadInputError(f"{path}: no such folder or file; record with `harness run`")
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]


def no_cassette(paths: Sequence[Path]) -> str:
    """What is said of folders without a cassette."""
    holds = "holds" if len(paths) == 1 else "hold"
    return f"{' and '.join(map(str, paths))} {holds} no cassette."


def existing(path: Path) -> Path:
    """A cassette that is named.

    Raises:
        BadInputError: there is no such file.
    """
    if not path.is_file():
        raise BadInputError(f"{path}: no such file; `harness cassette ls` lists them")
    return path


def ranges(numbers: Sequence[int]) -> str:
    """[3, 5, 6, 7] -> `3,5-7`; many are counted."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts[:_MOST_RANGES])
    return shown if len(parts) <= _MOST_RANGES else f"{shown},… ({count(len(numbers))} lines)"
