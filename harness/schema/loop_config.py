"""Every setting of the loop, and every way a run can end."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field

from harness.schema.record import Record


class TerminationReason(StrEnum):
    """How a run ended; whether its result is right is another question."""

    COMPLETED = "completed"
    MAX_ITERATIONS = "max_iterations"
    MAX_ATTEMPTS = "max_attempts"
    NO_OUTPUT = "no_output"
    SUBMIT_BEFORE_OUTPUT = "submit_before_output"
    NO_SUBMIT = "no_submit"
    ERROR = "error"
    TOOL_ERROR = "tool_error"
    MODEL_ERROR = "model_error"
    BUDGET_EXCEEDED = "budget_exceeded"
    DURATION_EXCEEDED = "duration_exceeded"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    CONTEXT_EXCEEDED = "context_exceeded"
    CANCELLED = "cancelled"
    REPLAY_MISS = "replay_miss"
    INFRASTRUCTURE_ERROR = "infrastructure_error"


UNSCORED = frozenset({TerminationReason.REPLAY_MISS, TerminationReason.INFRASTRUCTURE_ERROR})
"""Endings that say nothing about the agent: never scored, counted apart."""


SUBMIT_TOOL = "submit"
"""Name of the tool that `reflection` adds."""


class Confirm(Record):
    """Asking back before a text answer is accepted."""

    enabled: bool = False
    mode: Literal["structured", "second_text"] = "structured"
    """`structured`: COMPLETED or CONTINUE is asked for; `second_text`: the next text is it."""
    max_prompts: int = Field(default=2, ge=1)
    """Questions in a row before the text is accepted unconfirmed."""
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


class LoopConfig(Record):
    """One configuration of the loop."""

    model_config = ConfigDict(allow_inf_nan=False)

    max_iterations: int = Field(default=20, ge=0)
    """Model calls per attempt; 0 makes none."""
    max_attempts: int = Field(default=3, ge=0)
    """Validation attempts; 0 makes no model call."""
    text_only: Literal["accept", "nudge", "error"] | None = None
    """A turn without calls. None means `nudge` where an output is declared, else `accept`."""
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
    semantic_failures: bool = True
    """A JSON object result with `"success": false` is a failed call."""
    max_tool_calls_per_turn: int | None = Field(default=None, ge=1)
    overflow: Literal["error", "drop"] = "error"
    """Calls beyond the cap: answered with an error, or dropped from the turn."""
    multi_output: Literal["last", "first"] = "last"
    """Which of several outputs in one turn counts."""
    on_truncation: Literal["reprompt", "fail", "execute"] = "reprompt"
    """A turn that was cut at its token limit and holds calls."""
    tool_timeout_s: float = Field(default=60, gt=0)
    max_output_tokens: int = Field(default=4096, ge=1)
    """Tokens the model may write per call."""
    text_protocol: Literal["json"] | None = None
    """Tool calls travel as text, for models without native tool calls."""
    budget: Budget = Budget()
    raise_on_failure: bool = False
    """Raise instead of returning a trajectory whose ending is not `completed`."""
