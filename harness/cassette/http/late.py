"""Requests that come after their cassette was closed, when no other is open any more either.

The patch is gone by then. What stays refuses these, and passes all others on as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from harness.cassette.http.answer import Answer, late_answer
from harness.cassette.http.transports import response_to, transports


def refuse_late_requests() -> None:
    """Have them refused for as long as the process runs; doing it again does nothing."""
    for library, transport in transports():
        for name, guard in (("handle_request", _guard), ("handle_async_request", _guard_async)):
            handle = vars(transport).get(name)
            if handle is not None and not hasattr(handle, "harness_guards"):
                guarded = guard(library, handle)
                guarded.harness_guards = True
                setattr(transport, name, guarded)


def _guard(library: ModuleType, handle: Callable[[Any, Any], Any]) -> Any:
    @functools.wraps(handle)
    def guarded(transport: Any, request: Any) -> Any:
        late = _late(request)
        return handle(transport, request) if late is None else response_to(library, request, late)

    return guarded


def _guard_async(library: ModuleType, handle: Callable[[Any, Any], Any]) -> Any:
    @functools.wraps(handle)
    async def guarded(transport: Any, request: Any) -> Any:
        late = _late(request)
        if late is None:
            return await handle(transport, request)
        return response_to(library, request, late)

    return guarded


def _late(request: Any) -> Answer | None:
    return late_answer(request.method, str(request.url))
