"""Which task, repeat and suite a cassette file belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.cassette.format import HeaderLine


@dataclass(frozen=True, slots=True)
class Expected:
    """What a suite says about one cassette."""

    task_digest: str
    variants: frozenset[str]


Cell = tuple[str, str, int]
"""Suite, task and repeat."""

Cells = Mapping[Cell, Expected]
"""The cassettes that suites have."""


def place_of(path: Path) -> Cell | None:
    """The suite, task and repeat that a file is named after: SUITE/TASK/REPEAT.jsonl."""
    suite, task = path.absolute().parts[-3:-1] if len(path.absolute().parts) > 3 else ("", "")
    return (suite, task, int(path.stem)) if path.stem.isdecimal() else None


def cell_of(path: Path, header: HeaderLine, cells: Cells | None) -> Cell | None:
    """The cell of a known suite that a cassette is for; None where it is for none of them."""
    suites = {suite for suite, _, _ in cells or ()}
    recorded = (header.suite, header.task, header.repeat)
    for cell in (place_of(path), recorded):
        if cell is not None and cell[0] in suites:
            return cell
    return None
