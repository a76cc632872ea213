"""Every setting of the loop, and every way a run can end."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from harness.schema.record import Record


class TerminationReason(StrEnum):
    """How a run ended; whether its result is right is another question."""

    COMPLETED = "completed"
    SIGNAL = "signal"
    MAX_ITERATIONS = "max_iterations"
    MAX_ATTEMPTS = "max_attempts"
    NO_OUTPUT = "no_output"
    SUBMIT_BEFORE_OUTPUT = "submit_before_output"
    NO_SUBMIT = "no_submit"
    ERROR = "error"
    TOOL_ERROR = "tool_error"
    MODEL_ERROR = "model_error"
    LOOP_DETECTED = "loop_detected"
    BUDGET_EXCEEDED = "budget_exceeded"
    DURATION_EXCEEDED = "duration_exceeded"
    DENIED = "denied"
    BLOCKED = "blocked"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    CONTEXT_EXCEEDED = "context_exceeded"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"
    REPLAY_MISS = "replay_miss"
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    SKIPPED = "skipped"


SUCCEEDED = frozenset(
    {TerminationReason.COMPLETED, TerminationReason.SIGNAL, TerminationReason.SUSPENDED}
)
"""Endings that are no failure: nothing is raised for them, and no failure callback is called."""

UNSCORED = frozenset(
    {
        TerminationReason.REPLAY_MISS,
        TerminationReason.INFRASTRUCTURE_ERROR,
        TerminationReason.SKIPPED,
    }
)
"""Endings that say nothing about the agent: never scored, counted apart."""


SUBMIT_TOOL = "submit"
"""Name of the tool that `reflection` adds."""


class Confirm(Record):
    """Asking back before a text answer is accepted."""

    enabled: bool = False
    mode: Literal["structured", "second_text", "counted"] = "structured"
    """`structured`: COMPLETED or CONTINUE is asked for; `second_text`: the next text is it;
    `counted`: the text after `max_prompts` questions in the run is it, and says nothing about
    whether it was confirmed. A run that is resumed after a suspension counts anew."""
    max_prompts: int = Field(default=2, ge=1)
    """Questions in a row before the text is accepted unconfirmed; in the run where `counted`."""
    prompt: str | None = None
    """The question; None is the built-in one of the mode."""


class Budget(Record):
    """Limits over the whole run; None is no limit. Reaching one blocks only what comes next."""

    model_config = ConfigDict(allow_inf_nan=False)

    max_iterations: int | None = Field(default=None, ge=0)
    max_tool_calls: int | None = Field(default=None, ge=0)
    max_duration_s: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)
    """Tokens of all four buckets, over every model call of whatever kind."""
    max_cost_usd: float | None = Field(default=None, ge=0)
    """Needs a price of the model."""
    max_files_modified: int | None = Field(default=None, ge=0)
    """Distinct files that tools write."""
    max_lines_changed: int | None = Field(default=None, ge=0)
    """Lines that tools write, over all files."""


class Governance(Record):
    """What tool calls may do; None is no restriction."""

    per_minute: int | None = Field(default=None, ge=1)
    """Calls in any minute."""
    burst: int | None = Field(default=None, ge=1)
    """Calls in any second."""
    autonomy: Literal["read_only", "supervised", "full"] = "full"
    """`read_only` denies whatever writes, runs commands or does not say what it does;
    `supervised` lets it run with a warning."""
    scopes: tuple[str, ...] | None = None
    """What the caller is allowed: `tools:execute` for every tool, or `tools:NAME`."""
    commands: tuple[str, ...] | None = None
    """Programs that commands may start; each segment of a command line is looked at."""
    paths: tuple[str, ...] | None = None
    """Folders and files that tools may touch."""
    domains: tuple[str, ...] | None = None
    """Hosts that tools may reach, their subdomains included."""


class Window(Record):
    """How much of the conversation the model is sent; the first user message always is."""

    max_messages: int | None = Field(default=None, ge=1)
    """Messages of the neutral transcript, the first one included."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Estimated at four characters a token."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.max_messages is None and self.max_tokens is None:
            raise PydanticCustomError(
                "window", "give max_messages or max_tokens, or leave the window out"
            )
        return self


class Compaction(Record):
    """Summarising older turns by a model call of its own; sizes at four characters a token."""

    above_tokens: int | None = Field(default=None, ge=1)
    """Size of the conversation from which it is done."""
    context_tokens: int | None = Field(default=None, ge=1)
    """What the model can be sent; the earlier of both limits counts."""
    free_tokens: int = Field(default=8000, ge=0)
    """It is done when less than this is left of `context_tokens`."""

    @property
    def limit(self) -> int:
        """Size of the conversation above which it is done."""
        limits = [] if self.above_tokens is None else [self.above_tokens]
        if self.context_tokens is not None:
            limits.append(self.context_tokens - self.free_tokens)
        return min(limits)

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        free, context = self.free_tokens, self.context_tokens
        if self.above_tokens is None and context is None:
            raise PydanticCustomError(
                "compaction", "give above_tokens or context_tokens, or leave the compaction out"
            )
        if context is not None and free >= context:
            raise PydanticCustomError(
                "compaction",
                "free_tokens {free} leaves nothing of context_tokens {context}: lower free_tokens",
                {"context": context, "free": free},
            )
        return self


class StopCondition(Record):
    """Ends the run with a signal after an iteration in which it holds; exactly one is given."""

    tool_called: str | None = None
    """A tool of this name was run."""
    text_contains: str | None = None
    """The model's text holds this."""
    tokens_above: int | None = Field(default=None, ge=0)
    """The run has used more tokens than this, all buckets together."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise PydanticCustomError(
                "stop_condition", "give one of tool_called, text_contains and tokens_above"
            )
        return self


class LoopConfig(Record):
    """One configuration of the loop."""

    model_config = ConfigDict(allow_inf_nan=False)

    max_iterations: int = Field(default=20, ge=0)
    """Model calls per attempt; 0 makes none."""
    max_attempts: int = Field(default=3, ge=0)
    """Validation attempts; 0 makes no model call."""
    text_only: Literal["accept", "nudge", "error"] | None = None
    """A turn without calls. None means `nudge` where an output or a terminal tool is declared,
    else `accept`."""
    nudge_max: int = Field(default=1, ge=0)
    """Reminders in a row before the run ends with `no_output`; a tool turn resets the count."""
    confirm: Confirm = Confirm()
    reflection: bool = False
    """Show the draft of an output to its reflection handler; `submit` then ends the run."""
    submit_before_output: Literal["fatal", "feedback"] = "fatal"
    tool_error: Literal["continue", "fail"] = "continue"
    """`fail`: the first failed call ends the run."""
    error_threshold: int = Field(default=3, ge=0)
    """Failed calls in a row that end the run with `error`; 0 is off."""
    llm_error_threshold: int = Field(default=1, ge=1)
    """Failed model calls in a row that end the run with `model_error`."""
    breaker: int = Field(default=0, ge=0)
    """Failures of the same tool with the same arguments and error, after which that call is no
    longer run; 0 is off."""
    semantic_failures: bool = True
    """A JSON object result with `"success": false` is a failed call."""
    loop_detection: int = Field(default=0, ge=0)
    """Identical turns in a row, of which the last is not run and ends the run; 0 is off."""
    max_tool_calls_per_turn: int | None = Field(default=None, ge=1)
    overflow: Literal["error", "drop"] = "error"
    """Calls beyond the cap: answered with an error, or dropped from the turn."""
    parallel_tools: int = Field(default=1, ge=1)
    """Calls of a turn that run at the same time."""
    end_strategy: Literal["exhaustive", "graceful", "early"] = "exhaustive"
    """Siblings of an output or terminal call: run all, run those before it, run none."""
    multi_output: Literal["last", "first"] = "last"
    """Which of several outputs in one turn counts."""
    multi_signal: Literal["last", "first"] = "last"
    """Which of several signals in one turn counts."""
    on_truncation: Literal["reprompt", "fail", "execute"] = "reprompt"
    """A turn that was cut at its token limit and holds calls."""
    on_limit: Literal["return", "callback", "wrap_up"] = "return"
    """At `max_iterations`: give the last text back, ask the limit callback for a signal, or make
    one last call without tools."""
    soft_limit: int | None = Field(default=None, ge=1)
    """Iterations of the run at which to warn, once."""
    hard_limit: int | None = Field(default=None, ge=1)
    """Iterations of the run at which it stops and the limit callback is told."""
    on_denied: Literal["continue", "stop"] = "continue"
    tool_choice: str = Field(default="auto", min_length=1)
    """`auto`, `required`, or the name of the tool that must be called."""
    tool_timeout_s: float = Field(default=60, gt=0)
    max_output_tokens: int = Field(default=4096, ge=1)
    """Tokens the model may write per call."""
    governance: Governance | None = None
    budget: Budget = Budget()
    window: Window | None = None
    compaction: Compaction | None = None
    debug_llm: bool = False
    """Log each model call, redacted, as the loop and as the vendor sees it."""
    empty_retries: int = Field(default=0, ge=0)
    """Times an empty answer is asked again, per model turn."""
    text_protocol: Literal["terminus2", "react", "hermes", "xml", "json"] | None = None
    """Tool calls travel as text, for models without native tool calls."""
    history: Literal["fresh", "continue"] = "fresh"
    """`continue`: the loop keeps the conversation over its runs."""
    stream: bool = False
    """Have answers streamed; results are the same."""
    prompt_cache: bool = True
    """Mark what a vendor's prompt cache may keep, for vendors that want marks."""
    suspend_reply: bool = True
    """One model call without tools before a run is suspended."""
    stop_when: tuple[StopCondition | str, ...] = ()
    """Conditions, any of which ends the run; a text names one that was given to the loop."""
    raise_on_failure: bool = False
    """Raise when a run ends otherwise than `completed`, `signal` or `suspended`."""

    @model_validator(mode="after")
    def _warns_before_it_stops(self) -> Self:
        soft, hard = self.soft_limit, self.hard_limit
        if soft is not None and hard is not None and soft > hard:
            raise PydanticCustomError(
                "limits",
                "soft_limit {soft} would never warn: lower it to hard_limit {hard} or less, "
                "or leave it out",
                {"soft": soft, "hard": hard},
            )
        return self
