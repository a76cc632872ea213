"""Makes characters that could hide or reorder text visible."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f"  # control characters but tab and newline
    "\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Show control, direction, zero-width and unpaired surrogate characters as what they are.

    Text that a model or a tool wrote could otherwise look like something else than it is, or
    could not be written as UTF-8 at all. Tabs and newlines stay; so do the joiners of emoji.
    """
    return _HIDDEN.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"
