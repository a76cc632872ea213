"""The HTTP front: every request of a patched client library goes to the session of its context.

It is loaded when it is asked for: planning and reporting must not pay for vcrpy, which loads each
HTTP library that is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.cassette.http.patch import use as use

__all__ = ["use"]


def __getattr__(name: str) -> Any:
    if name != "use":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("harness.cassette.http.patch").use
