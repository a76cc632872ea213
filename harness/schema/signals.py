"""What a tool may ask of the run, besides answering the model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.schema.record import Json, Record


class Signal(Record):
    """End the run with a named value."""

    kind: Literal["signal"] = "signal"
    name: str = Field(min_length=1)
    data: Json = None


class Suspend(Record):
    """Break the run off so that it can be taken up again when an answer has come from outside.

    Of two in one turn the first counts.
    """

    kind: Literal["suspend"] = "suspend"
    correlation_id: str
    """Names what is waited for."""
    data: Json = None


class Blocked(Record):
    """The run cannot go on."""

    kind: Literal["blocked"] = "blocked"
    reason: str


RunRequest = Annotated[Signal | Suspend | Blocked, Field(discriminator="kind")]
