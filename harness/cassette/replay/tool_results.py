"""Recorded tool results: nothing runs on replay, and a folder can be rebuilt."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from harness.cassette.file.tape import ToolKey
from harness.cassette.format import StoredResult
from harness.cassette.replay.answers import Answers
from harness.cassette.replay.tool_differences import Difference, Differences
from harness.cassette.request.canonical import writable
from harness.errors import HarnessError, InfrastructureError, error_line
from harness.protocols import ToolProvider
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.results import ToolsMode
from harness.values import Effect, ToolInvocation, ToolOutcome


@dataclass(frozen=True, slots=True)
class _Served:
    """A call that was answered from the recording and has not run."""

    key: ToolKey
    invocation: ToolInvocation
    stored: StoredResult

    def comes_before(self, other: _Served) -> bool:
        """Whether the model asked for it earlier in the same turn."""
        turn = self.key.interaction
        same_turn = turn is not None and turn == other.key.interaction
        return same_turn and self.key.position < other.key.position


class RecordedTools:
    """A tool provider that serves recorded results, and records new ones while recording.

    Calls of one turn may come at the same time and in any order.
    """

    def __init__(
        self,
        inner: ToolProvider,
        session: Answers,
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
        self._inner = inner
        self._session = session
        self._mode = mode
        self._sandbox = sandbox
        self._differences = Differences(session.rules.text)
        self._lock = threading.Lock()
        self._rebuilding = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._waiting: list[_Served | Callable[[], object]] = []

    @property
    def differences(self) -> list[Difference]:
        """Calls that ran and gave something else than what is recorded."""
        return self._differences.found()

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered now, in order."""
        return self._inner.specs()

    def identity(self, name: str) -> str:
        """Digest of a tool's schema and settings."""
        return self._inner.identity(name)

    def is_sequential(self, name: str) -> bool:
        """Whether a tool never runs at the same time as another call of its turn."""
        return self._inner.is_sequential(name)

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        """What a call does outside the loop; None when the tool cannot say."""
        return self._inner.effects(name, arguments)

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
        if self._session.recording:
            return self._record(invocation, key, stored)
        if self._mode == "replay":
            if stored is None:
                raise self._session.miss(self._session.explain_tool(key))
            return _outcome(stored)
        self.rebuild()
        if stored is None:
            return self._run(invocation)
        return self._run_and_compare(_Served(key, invocation, stored))

    def prepare(self, act: Callable[[], object]) -> None:
        """Have something done before any later call runs; where none runs, it never is."""
        with self._lock:
            self._waiting.append(act)

    def rebuild(self) -> None:
        """Do what is prepared, and run the served calls that have not run yet, in their order.

        Then the folder is as they left it.

        Raises:
            InfrastructureError: what is prepared cannot be done, whatever the reason.
        """
        # Held to the end: no other call may run in a folder that is half rebuilt.
        with self._rebuilding:
            with self._lock:
                waiting, self._waiting = self._waiting, []
            for one in waiting:
                if isinstance(one, _Served):
                    self._run_and_compare(one)
                else:
                    _do(one)

    def _record(
        self, invocation: ToolInvocation, key: ToolKey, stored: StoredResult | None
    ) -> ToolOutcome:
        if stored is not None:
            self._await(_Served(key, invocation, stored))
            return _outcome(stored)
        self.rebuild()
        live = self._run(invocation)
        result = StoredResult(
            content=live.content,
            status=live.status,
            duration_s=round(live.duration_s, 4),
            asks=live.asks,
        )
        kind = None if self._sandbox is None else self._sandbox()
        self._session.record_tool(key, result, kind)
        return _outcome(result)

    def _await(self, served: _Served) -> None:
        """Put a call after those before it in its turn, whenever they came."""
        with self._lock:
            place = len(self._waiting)
            while place:
                before = self._waiting[place - 1]
                if not (isinstance(before, _Served) and served.comes_before(before)):
                    break
                place -= 1
            self._waiting.insert(place, served)

    def _run(self, invocation: ToolInvocation) -> ToolOutcome:
        with self._session.running_tool():
            live = self._inner.invoke(invocation)
        redactor = self._session.redactor
        asks = live.asks and redactor.record(live.asks)
        return replace(live, content=redactor.text(str(writable(live.content))), asks=asks)

    def _run_and_compare(self, served: _Served) -> ToolOutcome:
        recorded = _outcome(served.stored)
        turn = served.key.interaction if served.stored.together else None
        self._differences.add(served.invocation, recorded, self._run(served.invocation), turn=turn)
        return recorded

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
        with self._lock:
            ordinal = self._seen[key.id]
            self._seen[key.id] += 1
        return replace(key, ordinal=ordinal)


def _do(act: Callable[[], object]) -> None:
    try:
        act()
    except HarnessError:
        raise
    except Exception as error:
        # Taken for a tool's, the error would be told to the model, and the trial would go on.
        raise InfrastructureError(f"the machine cannot be prepared: {error_line(error)}") from error


def _outcome(stored: StoredResult) -> ToolOutcome:
    return ToolOutcome(stored.content, stored.status, stored.duration_s, stored.asks)
