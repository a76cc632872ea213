"""Every seam of the harness on one page, with the values that cross it.

Implementations do not inherit from these; they only have the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from harness.schema.messages import Message, ModelTurn, Text, ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.results import Score, Verdict
from harness.schema.signals import RunRequest, Signal
from harness.schema.suite import ModelConfig, Task
from harness.schema.trajectory import Event, Trajectory

Item = TypeVar("Item")
Result = TypeVar("Result")


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


OnDelta = Callable[[ModelDelta], None]


class Provider(Protocol):
    """Answers model requests: a live client, or a script."""

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        """Answer one request.

        Args:
            request: What is asked.
            on_delta: When given, the answer is streamed and each piece is shown as it comes. The
                turn is the same either way.

        Raises:
            ModelCallError: the call failed; the engine counts it.
        """
        ...


class StreamAssembler(Protocol):
    """Puts one streamed answer together again."""

    def add(self, event: JsonObject) -> Sequence[ModelDelta]:
        """Take the next server-sent event; gives what it shows to a reader.

        Raises:
            ModelCallError: the event says that the answer failed.
        """
        ...

    def body(self) -> JsonObject:
        """The answer as the vendor would have given it without streaming.

        Raises:
            MalformedAnswerError: the stream ended before the answer did.
        """
        ...


class Dialect(Protocol):
    """One vendor's wire format, as pure functions."""

    name: str
    """For instance `openai-chat`."""
    endpoint: str
    """End of the URL path it is spoken at, for instance `/chat/completions`."""

    def to_request(self, request: ModelRequest, *, stream: bool = False) -> JsonObject:
        """The JSON body of the vendor's request."""
        ...

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the vendor's answer.

        Raises:
            MalformedAnswerError: the body is not what the vendor's format allows.
        """
        ...

    def assembler(self) -> StreamAssembler:
        """What puts a streamed answer together, for one answer."""
        ...

    def split(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """What identifies a request: its canonical parameters, and its canonical messages in order.

        Spellings that mean the same come out the same (a string and one text block, an absent key
        and an explicit null at known levels); cache marks are left out. System text that the
        dialect keeps among the messages stays there.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A call that passed every check and is about to run."""

    call_id: str
    name: str
    arguments: JsonObject
    position: int
    """Index of the call in its turn."""
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of an invocation; failures are results that the model sees."""

    content: str
    status: Literal["ok", "failed", "raised", "timed_out"] = "ok"
    duration_s: float = 0.0
    asks: RunRequest | None = None
    """A signal, a suspension or a block; a tool may also return one of these by itself."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something a call is about to do outside the loop."""

    kind: Literal["read", "write", "command", "network"]
    target: str
    """A path, a command line, or a host."""
    lines: int = 0
    """Lines that a write brings."""


class Tool(Protocol):
    """One tool."""

    spec: ToolSpec
    settings: JsonObject
    """What shapes its results besides the arguments; part of a recorded result's identity."""
    sequential: bool
    """Never runs at the same time as another call of its turn."""

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        """What a call with these arguments does outside the loop; None when it cannot say."""
        ...

    def call(self, arguments: JsonObject, timeout_s: float) -> Json | ToolOutcome:
        """Run it. A plain value is a success; an exception becomes a failed result."""
        ...


class ToolProvider(Protocol):
    """The tools a run may use: live, or recorded."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered now, in order."""
        ...

    def identity(self, name: str) -> str:
        """Digest of a tool's schema and settings."""
        ...

    def is_sequential(self, name: str) -> bool:
        """Whether a tool never runs at the same time as another call of its turn."""
        ...

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        """What a call does outside the loop; None when the tool cannot say."""
        ...

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        """Run one call; never raises for what the tool does."""
        ...


Validator = Callable[[Json], str | None]
"""Says what is wrong with an output, or None."""

ReflectionHandler = Callable[[Json], str]
"""Shows the agent its draft."""


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The structured result a run is asked for."""

    tool: ToolSpec
    validators: tuple[Validator, ...] = ()
    """Run in order after the schema; the first failure wins."""
    reflection_handler: ReflectionHandler | None = None


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What a text protocol finds in an answer."""

    text: str
    """What stands around the calls."""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and raw arguments of each call."""
    notes: str = ""
    """What the model is told about its answer, before the results."""


class TextProtocol(Protocol):
    """Tool calls as text, for models without native ones."""

    name: str

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """What the system prompt says about the tools and how to call them."""
        ...

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Find the calls; a text that looks like a call but does not parse is a malformed one.

        Args:
            text: What the model wrote.
            tools: What was offered, for protocols whose values get their types from it.
        """
        ...

    def render_call(self, call: ToolCall) -> str:
        """A call as the model would have written it."""
        ...

    def render_result(self, result: ToolResult) -> str:
        """A result as the model reads it."""
        ...


Observer = Callable[[Event], None]
"""Sees every event of a run; what it raises is collected and breaks nothing."""


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

    verdict: Literal["allowed", "warned", "denied", "escalated", "blocked"]
    """`warned` runs; `escalated` asks the approvers and is denied without one; `blocked` ends the
    run."""
    reason: str = ""


Check = Callable[[PendingCall], Judgement]
"""A rule of the user's for tool calls; one that raises denies the call."""


@dataclass(frozen=True, slots=True)
class Approval:
    """What an approver decides."""

    approved: bool
    reason: str = ""
    arguments: JsonObject | None = None
    """Run the call with these instead; they pass the schema and governance again."""


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
class Hook:
    """Functions that intercept a run. Any may be left out; one that gives None changes nothing."""

    name: str = "hook"
    """What events and errors call it."""
    before_run: Callable[[Sequence[Message]], Sequence[Message] | None] | None = None
    """Change the conversation that the run starts with."""
    after_run: Callable[[Trajectory], Trajectory | None] | None = None
    """Change what the run gives back."""
    before_iteration: Callable[[IterationPlan], IterationPlan | None] | None = None
    """Change model, tools and messages of one iteration, or append user text."""
    before_model: Callable[[ModelRequest], ModelRequest | SkipModel | None] | None = None
    """Change the request, or answer in the model's place, which ends the run."""
    after_model: Callable[[ModelTurn], None] | None = None
    """See what the model answered."""
    before_tool: Callable[[PendingCall], JsonObject | SkipTool | None] | None = None
    """Change the arguments, or give the result without running the call."""
    approve_tool: Callable[[PendingCall], Approval | bool | None] | None = None
    """Decide whether a call may run; None leaves it to others. Raising denies it."""
    after_tool: Callable[[PendingCall, ToolOutcome], ToolOutcome | str | None] | None = None
    """Replace what the model sees."""
    pause_check: Callable[[int], str | None] | None = None
    """A reason to pause before the iteration of this number."""


@dataclass(frozen=True, slots=True)
class CallAndResult:
    """A tool call with its answer."""

    call: ToolCall
    result: ToolResult


TerminalCheck = Callable[[Sequence[CallAndResult]], Signal | str | None]
"""Sees all calls and results of a turn; a signal, or the name of one, ends the run."""

LimitCallback = Callable[[], Signal | str | None]
"""Asked at a limit; gives the signal that the run ends with."""


class Recall(Protocol):
    """Earlier items that bear on a task."""

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Up to `limit` items, the best first."""
        ...


StopTest = Callable[[Trajectory], bool]
"""A stop condition of the user's: sees the run so far, after an iteration."""

Redact = Callable[[Json], Json]
"""A copy of a value without what must reach no log."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder as a sandboxed process sees it."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What came of a process in a sandbox."""

    exit_code: int | None
    """None when it was killed at its timeout."""
    output: str
    """Standard output and error together, in the order written, cut in the middle if too long."""
    timed_out: bool = False
    duration_s: float = 0.0


class Sandbox(Protocol):
    """Runs processes that see only what they are given; nothing outlives a call."""

    kind: str
    """Recorded with each result, for instance `unshare`."""

    def run(
        self,
        command: Sequence[str],
        *,
        mounts: Sequence[Mount],
        timeout_s: float,
        cwd: str = "/workspace",
        env: Mapping[str, str] = {},
    ) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started.

        Raises:
            SandboxError: the sandbox itself failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """All that a scorer may look at."""

    task: Task
    model: ModelConfig
    trajectory: Trajectory
    verdict: Verdict | None


class Scorer(Protocol):
    """Turns one trial into one score; it reads the log and never the live run."""

    name: str

    def score(self, trial: ScoreInput) -> Score:
        """Score one trial; a value of None means that it does not apply."""
        ...


class Backend(Protocol):
    """Runs independent items somewhere, each a picklable argument of a picklable function."""

    def run(
        self, function: Callable[[Item], Iterable[Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield what the function gives for each item, in whatever order items finish."""
        ...
