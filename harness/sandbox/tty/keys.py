"""The keys of a terminal by tmux's names for them, and what each of them sends."""

from __future__ import annotations

import re

_PLAIN = {
    "enter": "\r",
    "kpenter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "btab": "\x1b[Z",
    "space": " ",
    "bspace": "\x7f",
}
_CURSOR = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
"""The last letter of what they send."""
_NUMBERED = {
    "ic": 2,
    "insert": 2,
    "dc": 3,
    "delete": 3,
    "ppage": 5,
    "pageup": 5,
    "pgup": 5,
    "npage": 6,
    "pagedown": 6,
    "pgdn": 6,
    "f5": 15,
    "f6": 17,
    "f7": 18,
    "f8": 19,
    "f9": 20,
    "f10": 21,
    "f11": 23,
    "f12": 24,
}
"""The number in what they send."""
_LETTERED = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_WEIGHTS = {"s": 1, "m": 2, "c": 4}
"""Of shift, meta and control, in the number that says which are held."""
_NAME = re.compile(r"((?:[CMScms]-)*)(.+)", re.DOTALL)


def key(name: str, *, application: bool = False) -> str | None:
    """What a key sends, or None if this is no name of one.

    Args:
        name: As tmux writes it: `C-c`, `^C`, `Up`, `M-x`, `F5`; letter case does not matter but
            for a letter without control.
        application: Whether the cursor keys send their other form.
    """
    if len(name) == 2 and name[0] == "^":
        name = f"C-{name[1]}"
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    held = {letter.lower() for letter in match[1].replace("-", "")}
    base = match[2]
    if len(base) == 1:
        return _character(base, held) if held else None
    return _named(base.lower(), sum(_WEIGHTS[letter] for letter in held), application=application)


def _character(base: str, held: set[str]) -> str | None:
    if "s" in held:
        return None
    if "c" in held:
        base = _control(base)
    return f"\x1b{base}" if base and "m" in held else base or None


def _control(base: str) -> str:
    if base == "?":
        return "\x7f"
    code = ord(base.upper())
    return chr(code & 0x1F) if base == " " or 0x40 <= code <= 0x5F else ""


def _named(base: str, held: int, *, application: bool) -> str | None:
    modified = f"1;{held + 1}" if held else ""
    if base in _CURSOR:
        opening = "\x1bO" if application and not held else "\x1b["
        return f"{opening}{modified}{_CURSOR[base]}"
    if base in _LETTERED:
        return f"\x1b[{modified}{_LETTERED[base]}" if held else f"\x1bO{_LETTERED[base]}"
    if base in _NUMBERED:
        return f"\x1b[{_NUMBERED[base]}{f';{held + 1}' if held else ''}~"
    if base == "space" and held == _WEIGHTS["c"]:
        return "\0"
    if base in _PLAIN:
        return f"\x1b{_PLAIN[base]}" if held == _WEIGHTS["m"] else _PLAIN[base]
    return None
