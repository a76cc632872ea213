"""What the parts of a run tell it: that it is over, or that a result was handed in."""

from __future__ import annotations

from dataclasses import dataclass

from harness.schema.loop_config import TerminationReason
from harness.schema.record import Json
from harness.schema.signals import Signal


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is over."""

    reason: TerminationReason
    error: str | None = None
    signal: Signal | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """An output the model handed in; any JSON value counts, empty ones too."""

    value: Json
