"""Recorded model traffic, tool results and verdicts: recorded once, replayed for ever.

`use` puts a cassette around any code, and `register` around code that uses vcrpy already. Both are
loaded when they are asked for: they need vcrpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.cassette.using import use as use
    from harness.cassette.vcr_users import register as register

__all__ = ["register", "use"]

_MODULES = {"register": "harness.cassette.vcr_users", "use": "harness.cassette.using"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
