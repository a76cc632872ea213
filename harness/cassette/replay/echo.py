"""What a terminal shows beside output: prompts, and what was typed into it.

Recordings of terminals without them are held against terminals with them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

_TITLES = ("New Terminal Output:", "Current Terminal Screen:")
_KEYS = ("^C", "^D", "^Z", "^\\")
"""How keys are echoed that are no text."""
_PROMPT = re.compile(
    r"(?P<output>.*?)(?:\([\w.-]{1,64}\) ?)?"
    r"(?:bash-\d\.\d+|(?:root|(?<!\S)[\w.-]{1,64})@[\w.-]{1,64}:[~/][^#$]{0,200}?)"
    r"[#$](?: (?P<rest>.*))?"
)
"""A shell's; output that ends without a line feed stands before it."""
_SHORT_PROMPT = re.compile(r"(?:.{0,8}?>|[#$%]|>>>|\.\.\.|In \[\d+\]:)(?: +(?P<rest>.*))?")
"""One that output may begin with, too. Typed fast, a few characters may be echoed before it."""
_FRAGMENT = 8
"""Characters of which the end of a typed line is told from output."""
_CUT = re.compile(r"\[\d+ bytes in between are left out\]")


class _Typed:
    """Lines that were typed, without their spaces."""

    def __init__(self, keystrokes: Iterable[str]) -> None:
        lines = {_bare(line) for keys in keystrokes for line in keys.split("\n")} - {""}
        self._lines = lines
        self._forward = sorted(lines)
        self._backward = sorted(line[::-1] for line in lines)

    def begin_with(self, text: str) -> bool:
        """Whether one of them does."""
        return _is_beginning(text, self._forward)

    def end_with(self, text: str) -> bool:
        """Whether one of them does, or is just that where it is short."""
        is_long = len(text) >= _FRAGMENT
        return text in self._lines or (is_long and _is_beginning(text[::-1], self._backward))


def _is_beginning(text: str, ordered: list[str]) -> bool:
    place = bisect_left(ordered, text)
    return place < len(ordered) and ordered[place].startswith(text)


def outputs(recorded: str, live: str, typed: Iterable[str]) -> tuple[str, str]:
    """What was put out, of two texts of a terminal: without prompts and what was typed.

    Args:
        recorded: What it showed then.
        live: What it shows now.
        typed: All keystrokes until then.
    """
    lines = _Typed(typed)
    before, now = _at_no_prompt(recorded, lines), _at_no_prompt(live, lines)
    # What is typed while a program runs is echoed without a prompt, sooner or later. Where the
    # recording has no prompts it has no echo either: a line that is only there was put out.
    has_prompts = any(_PROMPT.fullmatch(line) for line in recorded.split("\n"))
    kept = _without_echo(before, now, lines) if has_prompts else before
    return "\n".join(kept), "\n".join(_without_echo(now, before, lines))


def _without_echo(lines: list[str], others: list[str], typed: _Typed) -> list[str]:
    """Lines without typed ones that there are more of than among the others."""
    more = Counter(lines) - Counter(others)
    kept = []
    for line in lines:
        if more[line] > 0 and typed.end_with(_bare(line)):
            more[line] -= 1
        else:
            kept.append(line)
    return kept


def _bare(line: str) -> str:
    """A line without its spaces: a terminal loses those at which it begins a new line."""
    return "".join(line.split())


def _at_no_prompt(text: str, typed: _Typed) -> list[str]:
    """The lines that are neither prompt nor typed at one, without empty ones."""
    found = []
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line in _TITLES or line in _KEYS:
            continue
        if prompt := _PROMPT.fullmatch(line):
            if prompt["output"].strip():
                found.append(prompt["output"].rstrip())
            at += _wrapped(_bare(prompt["rest"] or ""), lines[at:], typed)
        elif (echo := _short_prompt(line, typed)) is not None:
            at += _wrapped(echo, lines[at:], typed)
        else:
            found.append(line)
    return found


def _short_prompt(line: str, typed: _Typed) -> str | None:
    """What is typed at a prompt that output may begin with, too; None if it is no prompt."""
    match = _SHORT_PROMPT.fullmatch(line)
    if match is None:
        return None
    rest = _bare(match["rest"] or "")
    return rest if not rest or typed.begin_with(rest) else None


def _wrapped(rest: str, following: list[str], typed: _Typed) -> int:
    """How many lines go on with what is typed at a prompt, a note that all is cut there too."""
    count = 0
    for line in following:
        if _CUT.fullmatch(line):
            return count + 1
        rest += _bare(line)
        if not rest or not typed.begin_with(rest):
            break
        count += 1
    return count
