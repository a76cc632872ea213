"""A Dockerfile as instructions with their lines: as Docker reads it, and nothing is run."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace

_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)\s*", re.ASCII)
_HEREDOC = re.compile(r"(?<![<\w])<<(-?)([\"']?)([A-Za-z_][\w.-]*)\2")
_WITH_HEREDOCS = frozenset({"RUN", "COPY", "ADD"})
_FLAG = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """Text that stands in the Dockerfile itself."""

    name: str
    content: str
    line: int
    """Where the content begins."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    name: str
    """In capitals."""
    value: str
    """What follows the name, as one line."""
    line: int
    """Where it begins, from 1."""
    starts: tuple[tuple[int, int], ...]
    """Places in the value, each with the line of the file that begins there."""
    heredocs: tuple[Heredoc, ...] = ()

    def script(self) -> str:
        """What a shell is given, of a `RUN`."""
        if self._is_all_heredoc:
            return "".join(one.content for one in self.heredocs)
        parts = [f"{one.content}{one.name}" for one in self.heredocs]
        _, rest = self.flags()
        return "\n".join([rest.rjust(len(self.value)), *parts])

    def line_at(self, place: int) -> int:
        """The line of the file that a place in the script comes from."""
        if self._is_all_heredoc:
            return self.heredocs[0].line + self.script().count("\n", 0, place)
        index = bisect_right([start for start, _ in self.starts], place) - 1
        return self.starts[max(index, 0)][1]

    @property
    def _is_all_heredoc(self) -> bool:
        _, rest = self.flags()
        return bool(self.heredocs) and not _HEREDOC.sub("", rest).strip()

    def files_in_place(self) -> dict[str, Heredoc]:
        """Of a `COPY`: what stands in the Dockerfile, by the word that stands for it."""
        marks = [match[0] for match in _HEREDOC.finditer(self.value)]
        return dict(zip(marks, self.heredocs, strict=False))

    def flags(self) -> tuple[dict[str, str], str]:
        """The options before the arguments, and what follows them."""
        found, rest = {}, self.value
        while match := _FLAG.match(rest):
            found[match[1]] = match[2] or ""
            rest = rest[match.end() :]
        return found, rest


def instructions(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile, in order."""
    lines = text.replace("\r\n", "\n").lstrip("\ufeff").split("\n")
    escape = _escape(lines)
    found, at = [], 0
    while at < len(lines):
        begin = at
        parts: list[tuple[int, str]] = []
        while at < len(lines):
            line = lines[at]
            at += 1
            if _is_comment(line) or (parts and not line.strip()):
                continue
            if not line.strip():
                break
            stripped = line.rstrip()
            goes_on = stripped.endswith(escape)
            parts.append((at, stripped[: -len(escape)] if goes_on else line))
            if not goes_on:
                break
        if parts:
            instruction = _instruction(parts)
            heredocs, at = _heredocs(instruction, lines, at)
            found.append(replace(instruction, heredocs=heredocs))
        at = max(at, begin + 1)
    return found


def words(text: str) -> list[str]:
    """Text at its spaces, those within quotes left alone; words as written."""
    found, word, quote, at = [], "", "", 0
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            word += text[at : at + 2]
            at += 2
            continue
        if quote or not char.isspace():
            word += char
            quote = "" if char == quote else quote or (char if char in "'\"" else "")
        elif word:
            found.append(word)
            word = ""
        at += 1
    return [*found, word] if word else found


def json_form(value: str) -> list[str] | None:
    """The texts of a list in JSON, the other way to write arguments; None if it is none."""
    if not value.lstrip().startswith("["):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and all(isinstance(one, str) for one in found):
        return found
    return None


def _escape(lines: list[str]) -> str:
    """What goes on with the next line: directives at the top may change it."""
    for line in lines:
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None:
            break
        if match[1].lower() == "escape" and match[2] in ("\\", "`"):
            return match[2]
    return "\\"


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _instruction(parts: list[tuple[int, str]]) -> Instruction:
    """One instruction of the lines it stands on."""
    value, starts = "", []
    for number, part in parts:
        starts.append((len(value), number))
        value += part
    begin = len(value) - len(value.lstrip())
    name, _, rest = value.strip().partition(" ")
    if "\t" in name:
        name, _, rest = value.strip().partition("\t")
    skipped = begin + len(name) + 1 + (len(rest) - len(rest.lstrip()))
    moved = [(max(start - skipped, 0), number) for start, number in starts]
    return Instruction(name.upper(), rest.strip(), parts[0][0], tuple(moved))


def _heredocs(
    instruction: Instruction, lines: list[str], at: int
) -> tuple[tuple[Heredoc, ...], int]:
    """The texts that follow an instruction, and the line after them."""
    if instruction.name not in _WITH_HEREDOCS:
        return (), at
    found = []
    for match in _HEREDOC.finditer(instruction.value):
        content, begin, end = "", at, at
        while end < len(lines):
            line = lines[end].lstrip("\t") if match[1] else lines[end]
            end += 1
            if line == match[3]:
                found.append(Heredoc(match[3], content, begin + 1))
                at = end
                break
            content += f"{line}\n"
        else:
            # No other can follow one that does not end, and looking for each takes long.
            break
    return tuple(found), at
