"""The pages of the documentation, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    ROOT / "docs" / f"{name}.md"
    for name in ("loop", "agents", "providers", "scenarios", "migration", "cassettes")
)

_NAMES_FILE = re.compile(r"`([\w./-]+\.\w+)`\S*:$")
_PRINTS = re.compile(r"print\(.*\)  # (.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: Path
    line: int
    """Of its first line, counted from 1."""
    language: str
    text: str
    file: str | None
    """What the sentence before it says it is."""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text().splitlines()
    start, language, before = 0, "", ""
    for number, line in enumerate(lines, start=1):
        if not line.startswith("```"):
            before = line if line and not start else before
        elif not start:
            start, language = number + 1, line.removeprefix("```")
        else:
            found = _NAMES_FILE.search(before)
            text = "\n".join(lines[start - 1 : number - 1]) + "\n"
            yield Block(page, start, language, text, found[1] if found else None)
            start, before = 0, ""


def script(page: Path) -> str:
    """The Python of a page as one script, each line where it stands in the page."""
    lines = [""] * len(page.read_text().splitlines())
    for block in blocks(page):
        if block.language == "python" and block.file is None:
            written = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(written)] = written
    return "\n".join(lines) + "\n"


def printed(page: Path) -> list[str]:
    """What the comments after its prints say that they print."""
    return [found[1] for line in script(page).splitlines() if (found := _PRINTS.search(line))]


def write_files(page: Path, folder: Path) -> list[Path]:
    """The files that a page shows, written where it says."""
    written = []
    for block in blocks(page):
        if block.file is not None:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:  # a page may show a file in pieces
                file.write(block.text)
            written.append(path)
    return written


@dataclass(frozen=True)
class Table:
    """A table, cell by cell."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(page: Path) -> Iterator[Table]:
    """The tables of a page, in order."""
    rows: list[tuple[str, ...]] = []
    for line in [*page.read_text().splitlines(), ""]:
        if line.startswith("|"):
            # A bar within code is written with a backslash.
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            rows.append(tuple(cell.strip() for cell in cells))
        elif rows:
            yield Table(rows[0], tuple(rows[2:]))
            rows = []


def code(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
