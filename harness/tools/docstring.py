"""What a Google-style docstring says of a function and its parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|Todo|Warns?|"
    r"Warnings?|See Also|References|Keyword Args|Other Parameters):\s*\Z"
)
_PARAMETERS = ("Args", "Arguments", "Parameters")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(slots=True)
class Described:
    """A docstring, taken apart."""

    text: str = ""
    """What stands before the first section, a line for each paragraph."""
    parameters: dict[str, str] = field(default_factory=dict)


def take_apart(docstring: str) -> Described:
    """Take apart a docstring whose indentation is removed."""
    lines = docstring.splitlines()
    starts = [i for i, line in enumerate(lines) if _SECTION.match(line)]
    end = starts[0] if starts else len(lines)
    found = Described(text=_paragraphs(lines[:end]))
    for start, stop in pairwise([*starts, len(lines)]):
        if lines[start].partition(":")[0] in _PARAMETERS:
            found.parameters.update(_entries(lines[start + 1 : stop]))
    return found


def _paragraphs(lines: list[str]) -> str:
    blocks = "\n".join(line.strip() for line in lines).strip().split("\n\n")
    return "\n".join(" ".join(block.split()) for block in blocks if block.strip())


def _entries(lines: list[str]) -> dict[str, str]:
    """Name and text of each entry; deeper lines go on with the one before."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    entries: dict[str, str] = {}
    name = None
    for line in lines:
        entry = _ENTRY.match(line.strip())
        if entry and len(line) - len(line.lstrip()) == min(indents):
            name, text = entry.groups()
            entries[name] = text
        elif name is not None:
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries
