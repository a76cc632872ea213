"""Every seam of the harness on one page; the values that cross them are in `values.py`.

The seams of the machines that tasks run on are in `containers.py`. Implementations do not inherit
from these; they only have the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from harness.schema.messages import Message, ModelTurn, ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.results import Score
from harness.schema.signals import Signal
from harness.schema.trajectory import Event, Trajectory
from harness.values import (
    Approval,
    CallAndResult,
    Effect,
    IterationPlan,
    Judgement,
    ModelDelta,
    ModelRequest,
    ParsedText,
    PendingCall,
    ScoreInput,
    SkipModel,
    SkipTool,
    ToolInvocation,
    ToolOutcome,
)

Item = TypeVar("Item")
Result = TypeVar("Result")


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
            OutOfTimeError: it was cut after `request.limit_s`; the run ends.
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
    """End of the URL path it is spoken at, for instance `/chat/completions`; with a colon before
    it, the method of a model that the path names."""
    base_url: str
    """What the vendor's SDK takes as its base URL where it is given none."""
    path: str
    """What such an SDK puts after it; where the path names the model, what comes before that."""
    messages_key: str
    """Where a request has its messages."""
    uncounted: frozenset[str]
    """Parameters that do not change the answer, as the vendor describes them: who asks, what for,
    how it is billed, cached and kept. They are no part of a request's identity, nor kept."""
    volatile: frozenset[str]
    """Keys of an answer, other ones each time and never sent back: names for it, and times."""
    last_events: frozenset[str]
    """Which server-sent events end a stream: by the type in their data, or by all of their data.
    Empty where no event says so."""
    words: str
    """Keys and fixed values of requests and answers: what no secret is taken to be. Those of fewer
    than 8 characters need not be there."""

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

    def render_results(self, results: Sequence[ToolResult], notes: str) -> str:
        """The results of a turn as the model reads them.

        Args:
            results: At least one, in call order.
            notes: What parsing found to say about the answer that held the calls.
        """
        ...


Observer = Callable[[Event], None]
"""Sees every event of a run; what it raises is collected and breaks nothing."""


Check = Callable[[PendingCall], Judgement]
"""A rule of the user's for tool calls; one that raises denies the call."""


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
