"""Recorded tool results: nothing runs on replay, and a folder can be rebuilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from harness.cassette.canonical import writable
from harness.cassette.format import StoredResult
from harness.cassette.session import Session
from harness.cassette.tape import ToolKey
from harness.protocols import ToolInvocation, ToolOutcome, ToolProvider
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.results import ToolsMode


@dataclass(frozen=True, slots=True)
class Difference:
    """A tool that gave something else than what was recorded."""

    name: str
    arguments: JsonObject
    recorded: ToolOutcome
    live: ToolOutcome


class RecordedTools:
    """A tool provider that serves recorded results, and records new ones while recording."""

    def __init__(
        self,
        inner: ToolProvider,
        session: Session,
        *,
        mode: ToolsMode,
        sandbox: Callable[[], str] | None = None,
    ) -> None:
        """Put recordings before tools.

        Args:
            inner: The real tools.
            session: The trial's recording.
            mode: On replay, `replay` runs nothing, and `live` runs the tools, feeds the recorded
                results and collects what differs. A recording session always runs them.
            sandbox: Names the kind of sandbox they run in, recorded with each result; asked for
                only when one is recorded, so that replaying needs none.
        """
        self.differences: list[Difference] = []
        self._inner = inner
        self._session = session
        self._mode = mode
        self._sandbox = sandbox
        self._seen: Counter[str] = Counter()
        self._waiting: list[tuple[ToolInvocation, ToolOutcome]] = []

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered now, in order."""
        return self._inner.specs()

    def identity(self, name: str) -> str:
        """Digest of a tool's schema and settings."""
        return self._inner.identity(name)

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        """Serve one call, or run it.

        Raises:
            ReplayMissError: nothing is recorded and nothing may run.
        """
        outcome = self._serve_or_run(invocation)
        self._session.spend(outcome.duration_s)
        return outcome

    def _serve_or_run(self, invocation: ToolInvocation) -> ToolOutcome:
        key = self._key(invocation)
        stored = self._session.tool_result(key)
        recorded = None if stored is None else _outcome(stored)
        if self._session.recording:
            return self._record(invocation, key, recorded)
        if self._mode == "replay":
            if recorded is None:
                raise self._session.miss(self._session.explain_tool(key))
            return recorded
        live = self._run(invocation)
        if recorded is None:
            return live
        self._compare(invocation, recorded, live)
        return recorded

    def rebuild(self) -> None:
        """Run the served calls that have not run yet, so that the folder is as they left it."""
        waiting, self._waiting = self._waiting, []
        for invocation, recorded in waiting:
            self._compare(invocation, recorded, self._run(invocation))

    def _record(
        self, invocation: ToolInvocation, key: ToolKey, recorded: ToolOutcome | None
    ) -> ToolOutcome:
        if recorded is not None:
            self._waiting.append((invocation, recorded))
            return recorded
        self.rebuild()
        live = self._run(invocation)
        result = StoredResult(
            content=live.content, status=live.status, duration_s=round(live.duration_s, 4)
        )
        kind = None if self._sandbox is None else self._sandbox()
        self._session.record_tool(key, result, kind)
        return _outcome(result)

    def _run(self, invocation: ToolInvocation) -> ToolOutcome:
        live = self._inner.invoke(invocation)
        content = self._session.redactor.text(str(writable(live.content)))
        return replace(live, content=content)

    def _compare(
        self, invocation: ToolInvocation, recorded: ToolOutcome, live: ToolOutcome
    ) -> None:
        if (recorded.content, recorded.status) != (live.content, live.status):
            self.differences.append(
                Difference(invocation.name, invocation.arguments, recorded, live)
            )

    def _key(self, invocation: ToolInvocation) -> ToolKey:
        redacted = self._session.redactor.json(writable(invocation.arguments))
        key = ToolKey(
            self._session.last,
            invocation.position,
            invocation.name,
            cast(JsonObject, redacted),
            self._inner.identity(invocation.name),
            float(invocation.timeout_s),
        )
        ordinal = self._seen[key.id]
        self._seen[key.id] += 1
        return replace(key, ordinal=ordinal)


def _outcome(stored: StoredResult) -> ToolOutcome:
    return ToolOutcome(stored.content, stored.status, stored.duration_s)
