"""Every seam of the harness on one page, with the values that cross it.

Implementations do not inherit from these; they only have the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from harness.schema.messages import Message, ModelTurn, ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.results import Score, Verdict
from harness.schema.suite import ModelConfig, Task
from harness.schema.trajectory import Event, Trajectory

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call in neutral terms."""

    model: str
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int = 4096
    temperature: float | None = None


class Provider(Protocol):
    """Answers model requests: a live client, or a script."""

    def complete(self, request: ModelRequest) -> ModelTurn:
        """Answer one request.

        Raises:
            ModelCallError: the call failed; the engine counts it.
        """
        ...


class Dialect(Protocol):
    """One vendor's wire format, as pure functions."""

    name: str
    """For instance `openai-chat`."""
    endpoint: str
    """End of the URL path it is spoken at, for instance `/chat/completions`."""

    def to_request(self, request: ModelRequest) -> JsonObject:
        """The JSON body of the vendor's request."""
        ...

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the vendor's answer.

        Raises:
            MalformedAnswerError: the body is not what the vendor's format allows.
        """
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


class Tool(Protocol):
    """One tool."""

    spec: ToolSpec
    settings: JsonObject
    """What shapes its results besides the arguments; part of a recorded result's identity."""

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

    def parse(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Text around the calls, and the calls as (name, raw arguments)."""
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
