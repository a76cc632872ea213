"""Runs tools so that whatever they do becomes one result."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace

from harness.errors import ConfigurationError, InfrastructureError
from harness.protocols import Tool
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.tools.loop_thread import LoopThread
from harness.tools.results import (
    ENDS_WITH_RUN,
    are_effects,
    as_outcome,
    raised,
    timed_out,
)
from harness.values import Effect, ToolInvocation, ToolOutcome

_LOG = logging.getLogger("harness.tools")

_GRACE_S = 10.0
"""What a tool that stops itself gets on top of its timeout, to hand in what it has."""

_Result = ToolOutcome | InfrastructureError


class Registry:
    """The live tools of a run.

    Each call runs in a daemon thread with a copy of the caller's context. One that times out is
    abandoned, and what it returns later is dropped. A tool with a true `stops_itself` attribute
    keeps to the timeout on its own. What an async tool does runs on one event loop in a thread of
    the registry's own, and is cancelled at the timeout.
    """

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._lock = threading.Lock()
        self._loop_thread = LoopThread()
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Add a tool after the others; during a run it is offered from the next turn on.

        Raises:
            ConfigurationError: there is a tool of this name.
        """
        name = tool.spec.name
        with self._lock:
            if name in self._tools:
                raise ConfigurationError(
                    f"tool {name!r} is there twice: a tool's name must be unique"
                )
            # A new mapping: another thread may be going through the old one.
            self._tools = {**self._tools, name: tool}

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered now, in order."""
        return tuple(tool.spec for tool in self._tools.values())

    def identity(self, name: str) -> str:
        """Digest of a tool's schema and settings."""
        tool = self._tools[name]
        value = {"spec": tool.spec.model_dump(mode="json"), "settings": tool.settings}
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def is_sequential(self, name: str) -> bool:
        """Whether a tool never runs at the same time as another call of its turn."""
        return self._tools[name].sequential

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        """What a call does outside the loop; None when the tool cannot say."""
        try:
            said: object = self._tools[name].effects(arguments)
        except Exception:  # noqa: BLE001 - then nobody knows what it does
            _LOG.warning("tool %r failed to say what a call does", name, exc_info=True)
            return None
        if said is None or are_effects(said):
            return said
        _LOG.warning("tool %r says %r of what a call does: give Effects or None", name, said)
        if inspect.iscoroutine(said):
            said.close()
        return None

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        """Run one call; one for which the run has no time left is not begun.

        Raises:
            InfrastructureError: the machine failed, not the tool.
        """
        if invocation.may_take_s <= 0:
            return ToolOutcome("not run: the run's time is used up", "timed_out")
        token = ENDS_WITH_RUN.set(invocation.limit_s is not None)
        try:
            return self._run(self._tools[invocation.name], invocation)
        finally:
            ENDS_WITH_RUN.reset(token)

    def _run(self, tool: Tool, invocation: ToolInvocation) -> ToolOutcome:
        results: queue.SimpleQueue[_Result] = queue.SimpleQueue()
        context = copy_context()
        started = time.monotonic()
        threading.Thread(
            target=lambda: results.put(context.run(_call, tool, invocation, self._loop_thread)),
            name=f"tool-{invocation.name}",
            daemon=True,
        ).start()
        grace_s = _GRACE_S if getattr(tool, "stops_itself", False) else 0.0
        try:
            result = results.get(timeout=invocation.may_take_s + grace_s)
        except queue.Empty:
            result = _timed_out(invocation)
        if isinstance(result, InfrastructureError):
            raise result
        return replace(result, duration_s=time.monotonic() - started)


def _call(tool: Tool, invocation: ToolInvocation, loop_thread: LoopThread) -> _Result:
    deadline = time.monotonic() + invocation.may_take_s
    try:
        value: object = tool.call(invocation.arguments, invocation.may_take_s)
        if not inspect.isawaitable(value):
            return as_outcome(value)
    # Also what is no Exception: a tool that calls sys.exit() must not look like one that hangs.
    except BaseException as error:  # noqa: BLE001 - any failure of a tool is a result
        return _failure(error)
    running = loop_thread.submit(_finish(value))
    try:
        return running.result(timeout=max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        running.cancel()
        _discard(value)
        return _timed_out(invocation)


def _discard(value: object) -> None:
    """Keep Python from warning of a coroutine that was cancelled before it began."""
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        # It may begin at this very moment; then cancelling has ended it.
        with suppress(ValueError):
            value.close()


async def _finish(value: Awaitable[object]) -> _Result:
    try:
        return as_outcome(await value)
    # Raised further, an exit would end the thread that all async tools run on.
    except BaseException as error:  # noqa: BLE001 - as above
        return _failure(error)


def _failure(error: BaseException) -> _Result:
    return error if isinstance(error, InfrastructureError) else raised(error)


def _timed_out(invocation: ToolInvocation) -> ToolOutcome:
    return ToolOutcome(timed_out(invocation.timeout_s), "timed_out")
