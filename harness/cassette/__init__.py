"""Recorded model traffic, tool results and verdicts: recorded once, replayed for ever.

`use` puts a cassette around any code. It is loaded when asked for: it needs vcrpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.cassette.using import use as use

__all__ = ["use"]


def __getattr__(name: str) -> Any:
    if name == "use":
        return importlib.import_module("harness.cassette.using").use
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
