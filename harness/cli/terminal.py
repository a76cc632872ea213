"""What a command prints: results on stdout, all else on stderr, control characters shown."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from harness.report.visible import visible


@dataclass(slots=True)
class Terminal:
    """One command's output."""

    json: bool = False
    """Whether stdout gets the result as JSON, and nothing else."""
    quiet: bool = False
    """Whether only results and errors are printed."""
    verbosity: int = 0
    _progress: bool = False
    """Whether the last line of stderr is a progress line."""

    def result(self, data: object, lines: Iterable[str]) -> None:
        """Print what a command found: the data as JSON, or the lines that say the same."""
        self._end_progress()
        if self.json:
            _print(json.dumps(data, indent=2, ensure_ascii=False), sys.stdout)
        else:
            for line in lines:
                _print(visible(line), sys.stdout)

    def say(self, line: str, *, verbosity: int = 0) -> None:
        """Print something that is not the result."""
        if not self.quiet and self.verbosity >= verbosity:
            self._end_progress()
            _print(visible(line), sys.stderr)

    def error(self, line: str) -> None:
        """Print why a command could not do its work."""
        self._end_progress()
        _print(f"error: {visible(line)}", sys.stderr)

    def progress(self, line: str) -> None:
        """Replace the progress line; does nothing where nobody watches."""
        if self.quiet or not sys.stderr.isatty() or os.environ.get("CI"):
            return
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{visible(line)[:width]:{width}}", end="", file=sys.stderr, flush=True)
        self._progress = True

    def _end_progress(self) -> None:
        if self._progress:
            print(file=sys.stderr)
            self._progress = False


def _print(text: str, stream: TextIO) -> None:
    """Print for a reader who may have seen enough: what a command found stays the same."""
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        # What is still buffered must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Warnings(logging.Handler):
    """Passes the package's warnings on to the terminal."""

    def __init__(self, terminal: Terminal, level: int = logging.WARNING) -> None:
        super().__init__(level if terminal.verbosity == 0 else logging.DEBUG)
        self._terminal = terminal
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one, unless it was printed before."""
        told = record.getMessage()
        line = told if record.levelno <= logging.INFO else f"{record.levelname.lower()}: {told}"
        if line not in self._said:
            self._said.add(line)
            self._terminal.say(line)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows as aligned lines, the first as heading.

    Args:
        rows: Cells; all rows are of one length.
        right: Columns that are aligned to the right.
    """
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = []
        for column, cell in enumerate(row):
            space = " " * (widths[column] - _width(cell))
            cells.append(space + cell if column in right else cell + space)
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("─" * width for width in widths))
    return lines


def _width(text: str) -> int:
    return sum(
        0
        if unicodedata.combining(character)
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
