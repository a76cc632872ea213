"""Runs tools so that whatever they do becomes one result."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
import time
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import replace

from harness.errors import ConfigurationError, InfrastructureError
from harness.protocols import Tool, ToolInvocation, ToolOutcome
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, storable

_GRACE_S = 10.0
"""What a tool that stops itself gets on top of its timeout, to hand in what it has."""


class Registry:
    """The live tools of a run.

    Each call runs in a daemon thread with a copy of the caller's context. One that times out is
    abandoned, and what it returns later is dropped. A tool with a true `stops_itself` attribute
    keeps to the timeout on its own.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        names = [tool.spec.name for tool in tools]
        if len(self._tools) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigurationError(f"tool {twice!r} is there twice: a tool's name must be unique")

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered, in order."""
        return tuple(tool.spec for tool in self._tools.values())

    def identity(self, name: str) -> str:
        """Digest of a tool's schema and settings."""
        tool = self._tools[name]
        value = {"spec": tool.spec.model_dump(mode="json"), "settings": tool.settings}
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        """Run one call.

        Raises:
            InfrastructureError: the machine failed, not the tool.
        """
        tool = self._tools[invocation.name]
        results: queue.SimpleQueue[ToolOutcome | InfrastructureError] = queue.SimpleQueue()
        context = copy_context()
        started = time.monotonic()
        threading.Thread(
            target=lambda: results.put(context.run(_call, tool, invocation)),
            name=f"tool-{invocation.name}",
            daemon=True,
        ).start()
        grace_s = _GRACE_S if getattr(tool, "stops_itself", False) else 0.0
        try:
            result = results.get(timeout=invocation.timeout_s + grace_s)
        except queue.Empty:
            message = f"timed out after {invocation.timeout_s:g} s"
            result = ToolOutcome(content=message, status="timed_out")
        if isinstance(result, InfrastructureError):
            raise result
        return replace(result, duration_s=time.monotonic() - started)


def _call(tool: Tool, invocation: ToolInvocation) -> ToolOutcome | InfrastructureError:
    try:
        value = tool.call(invocation.arguments, invocation.timeout_s)
        outcome = value if isinstance(value, ToolOutcome) else ToolOutcome(content=_as_text(value))
        return replace(outcome, content=storable(outcome.content))
    except InfrastructureError as error:
        return error
    # Also what is no Exception: a tool that calls sys.exit() must not look like one that hangs.
    except BaseException as error:  # noqa: BLE001 - any failure of a tool is a result
        return ToolOutcome(content=storable(f"{type(error).__name__}: {error}"), status="raised")


def _as_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
