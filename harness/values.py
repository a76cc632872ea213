"""The values that cross the seams of `protocols.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Literal, get_args

from harness.errors import ConfigurationError
from harness.schema.messages import Message, Text, ToolCall, ToolResult, ToolSpec
from harness.schema.record import JsonObject
from harness.schema.results import Verdict
from harness.schema.signals import Blocked, RunRequest, Signal, Suspend
from harness.schema.suite import ModelConfig, Task
from harness.schema.trajectory import Trajectory

OutcomeStatus = Literal["ok", "failed", "raised", "timed_out"]
EffectKind = Literal["read", "write", "command", "network"]
CallVerdict = Literal["allowed", "warned", "denied", "escalated", "blocked"]


def _hold(what: str, value: object, wanted: type | tuple[type, ...], give: str) -> None:
    """Refuse what users' code must not give: taken as it is, it could let a call pass."""
    if not isinstance(value, wanted):
        raise ConfigurationError(f"{what} = {value!r}: give {give}")


def _hold_one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigurationError(f"{what} = {value!r}: give one of {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call in neutral terms."""

    model: str
    system: str | None
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `required`, a tool's name, or `none`: then the tools are only there because the
    conversation holds calls to them, and nothing is offered."""
    max_output_tokens: int = 4096
    temperature: float | None = None
    cache_marks: bool = False
    """Mark what the vendor's prompt cache may keep: the system prompt and the last block of the
    last user message."""
    limit_s: float | None = field(default=None, compare=False)
    """What is left of the run's time, if that is limited: a call that takes longer is cut. It
    depends on how long other calls took, and is no part of what a recorded answer is found by."""
    on_wire: Callable[[JsonObject], None] | None = field(default=None, compare=False, repr=False)
    """Shown the body of the vendor's request before it is sent, for debugging."""

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools the model may call now."""
        return () if self.tool_choice == "none" else self.tools


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of a streamed answer, as it comes."""

    kind: Literal["text", "call_start", "call_arguments", "call_done"]
    text: str = ""
    """Text, a call's name at its start, or a piece of its raw arguments."""
    call_id: str = ""
    """Of the call it belongs to; empty for text."""


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A call that passed every check and is about to run."""

    call_id: str
    name: str
    arguments: JsonObject
    position: int
    """Index of the call in its turn."""
    timeout_s: float
    """As the settings say: what a recorded result is found by."""
    limit_s: float | None = None
    """What is left of the run's time, where that is less. It depends on how long other calls took,
    and is no part of what a recorded result is found by."""

    @property
    def may_take_s(self) -> float:
        """How long it may run; not at all if that is 0."""
        return self.timeout_s if self.limit_s is None else self.limit_s


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of an invocation; failures are results that the model sees."""

    content: str
    status: OutcomeStatus = "ok"
    duration_s: float = 0.0
    asks: RunRequest | None = None
    """A signal, a suspension or a block; a tool may also return one of these by itself. Of two
    suspensions in one turn the first counts: the run is resumed once, with one answer."""

    def __post_init__(self) -> None:
        """Refuse another status or content."""
        _hold("ToolOutcome.content", self.content, str, "a text")
        _hold_one_of("ToolOutcome.status", self.status, get_args(OutcomeStatus))
        asks = "a Signal, a Suspend or a Blocked"
        _hold("ToolOutcome.asks", self.asks, (Signal, Suspend, Blocked, NoneType), asks)


@dataclass(frozen=True, slots=True)
class Effect:
    """Something a call is about to do outside the loop."""

    kind: EffectKind
    target: str
    """A path, a command line, or a host."""
    lines: int = 0
    """Lines that a write brings."""

    def __post_init__(self) -> None:
        """Refuse another kind or target."""
        _hold_one_of("Effect.kind", self.kind, get_args(EffectKind))
        _hold("Effect.target", self.target, str, "a path, a command line or a host, as text")
        _hold("Effect.lines", self.lines, int, "a number of lines")


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What a text protocol finds in an answer."""

    text: str
    """What stands around the calls."""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and raw arguments of each call."""
    notes: str = ""
    """What the model is told about its answer, before the results."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that is well formed and not yet allowed."""

    call_id: str
    name: str
    arguments: JsonObject
    effects: Sequence[Effect] | None
    """None when the tool cannot say what it does."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check says of a pending call."""

    verdict: CallVerdict
    """`warned` runs; `escalated` asks the approvers and is denied without one; `blocked` ends the
    run."""
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse another verdict or reason."""
        _hold_one_of("Judgement.verdict", self.verdict, get_args(CallVerdict))
        _hold("Judgement.reason", self.reason, str, "a text")


@dataclass(frozen=True, slots=True)
class Approval:
    """What an approver decides."""

    approved: bool
    reason: str = ""
    arguments: JsonObject | None = None
    """Run the call with these instead; they pass the schema and governance again."""

    def __post_init__(self) -> None:
        """Refuse an answer that is neither yes nor no."""
        _hold("Approval.approved", self.approved, bool, "True or False")
        _hold("Approval.reason", self.reason, str, "a text")
        _hold("Approval.arguments", self.arguments, (dict, NoneType), "an object, or None")


@dataclass(frozen=True, slots=True)
class IterationPlan:
    """What an iteration is about to be run with, and may be changed."""

    iteration: int
    model: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    """May be described anew, put in another order, or left out, but not added to."""
    append_user: str = ""
    """Text for the user turn that is about to be sent, after its results; it stays there."""


@dataclass(frozen=True, slots=True)
class SkipModel:
    """Make no model call: this text is the answer."""

    text: str

    @property
    def content(self) -> tuple[Text, ...]:
        """The text as a turn's content; without text there is none."""
        return (Text(text=self.text),) if self.text else ()


@dataclass(frozen=True, slots=True)
class SkipTool:
    """Do not run the call: this is its result."""

    result: str


@dataclass(frozen=True, slots=True)
class CallAndResult:
    """A tool call with its answer."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder as a sandboxed process sees it."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class FileContent:
    """The beginning of a file in a container."""

    data: bytes
    size: int
    """Bytes of the whole file."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What came of a process in a sandbox."""

    exit_code: int | None
    """None when it was killed at its timeout."""
    output: str
    """Standard output and error together, in the order written, cut in the middle if too long."""
    timed_out: bool = False
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """All that a scorer may look at."""

    task: Task
    model: ModelConfig
    trajectory: Trajectory
    verdict: Verdict | None
