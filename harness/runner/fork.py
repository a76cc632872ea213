"""Going on with a recorded trial from some turn on: what came before is given as it was."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from harness.cassette.direct import DirectProvider
from harness.cassette.file.tape import ToolKey
from harness.cassette.format import InteractionLine, StoredResult
from harness.cassette.replay.answers import Answers, Before
from harness.cassette.replay.session import Session
from harness.cassette.replay.store import Store
from harness.cassette.request.canonical import CanonicalRequest
from harness.protocols import OnDelta, Provider
from harness.providers.catalog import NO_KEY, dialect_of, live_client
from harness.runner.plan import TrialSpec
from harness.runner.trial import TrialSettings, run_trial
from harness.runner.trial_record import Trial
from harness.schema.messages import ModelTurn
from harness.schema.suite import ModelConfig
from harness.values import ModelRequest


@dataclass(slots=True)
class Recalled:
    """What a recorded trial was given: its model's answers and its tools' results, in order."""

    model: ModelConfig
    answers: list[InteractionLine] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    """Of each of the loop's model calls, how many answers came before it: an SDK that tries again
    takes several."""
    results: dict[tuple[str | None, int], list[StoredResult]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By the model call that asked, and the place in its turn."""

    def answers_before(self, call: int) -> list[InteractionLine]:
        """What was answered before a model call, counted from 0."""
        return self.answers[: self.calls[call]] if call < len(self.calls) else self.answers


def recall(spec: TrialSpec, store: Store, settings: TrialSettings) -> tuple[Trial, Recalled]:
    """Replay a trial, and keep what it was given."""
    recalled = Recalled(spec.model)

    def watch(session: Session, provider: Provider) -> tuple[Answers, Provider]:
        return _Watched(session, recalled), _Counted(provider, recalled)

    return run_trial(spec, store, settings, around=watch), recalled


def calls_before(trial: Trial, turn: int) -> int:
    """How many model calls a trial made before a turn."""
    return sum(
        event.kind == "model_request" and event.iteration < turn
        for event in trial.trajectory.events
    )


def run_fork(
    spec: TrialSpec, store: Store, settings: TrialSettings, recalled: Recalled, calls: int
) -> Trial:
    """Run a trial whose first model calls are answered as recorded, whatever they ask now.

    Their tool calls run again where the trial records, to rebuild the folder, and are answered as
    recorded, too.

    Args:
        spec: The trial, maybe with other settings.
        store: What answers and records the rest.
        settings: How it is run.
        recalled: What the recorded trial was given.
        calls: How many model calls are answered from it.
    """

    def lead(session: Session, provider: Provider) -> tuple[Answers, Provider]:
        recorded = DirectProvider(
            dialect_of(recalled.model),
            _LedCalls(session, recalled.answers_before(calls)),
            lambda: live_client(recalled.model, NO_KEY),
        )
        return _LedTools(session, recalled), _LedProvider(recorded, provider, calls)

    return run_trial(spec, store, settings, around=lead)


class _Watched(Before):
    """Remembers what a session gives."""

    def __init__(self, session: Session, recalled: Recalled) -> None:
        super().__init__(session)
        self._recalled = recalled

    def claim(self, request: CanonicalRequest) -> InteractionLine | None:
        line = super().claim(request)
        if line is not None and request.is_model_call:
            self._recalled.answers.append(line)
        return line

    def tool_result(self, key: ToolKey) -> StoredResult | None:
        result = super().tool_result(key)
        if result is not None:
            self._recalled.results[key.interaction, key.position].append(result)
        return result


class _Counted:
    """A provider that says at which answer each of its calls began."""

    def __init__(self, provider: Provider, recalled: Recalled) -> None:
        self._provider = provider
        self._recalled = recalled

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        self._recalled.calls.append(len(self._recalled.answers))
        return self._provider.complete(request, on_delta)


class _LedCalls(Before):
    """Gives recorded answers first, on account of the trial's own session."""

    def __init__(self, session: Session, lines: list[InteractionLine]) -> None:
        super().__init__(session)
        self._session = session
        self._lines = iter(lines)

    def claim(self, request: CanonicalRequest) -> InteractionLine | None:
        line = next(self._lines, None)
        if line is None:
            return super().claim(request)
        self._session.give(line)
        return line


class _LedTools(Before):
    """Has the recorded results of the tool calls before the fork as well."""

    def __init__(self, session: Session, recalled: Recalled) -> None:
        super().__init__(session)
        self._results = {place: iter(results) for place, results in recalled.results.items()}

    def tool_result(self, key: ToolKey) -> StoredResult | None:
        waiting = self._results.get((key.interaction, key.position), iter(()))
        return next(waiting, None) or super().tool_result(key)


class _LedProvider:
    """Answers the first calls from the recording, and the others from the model."""

    def __init__(self, recorded: DirectProvider, live: Provider, calls: int) -> None:
        self._recorded = recorded
        self._live = live
        self._left = calls
        self.vendor: str | None = getattr(live, "vendor", None)
        """For traces."""

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        if self._left == 0:
            return self._live.complete(request, on_delta)
        self._left -= 1
        return self._recorded.complete(request, on_delta)
