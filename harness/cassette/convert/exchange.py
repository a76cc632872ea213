"""What an import finds: requests, their answers, and what the tools gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import CanonicalRequest
from harness.schema.record import JsonObject


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call of an answer gave."""

    position: int
    """Index of the call in its answer."""
    name: str
    arguments: JsonObject
    content: str
    together: bool = False
    """Whether only what all calls of the answer gave is known, and one of them holds it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, without secrets."""

    request: CanonicalRequest
    response: StoredResponse
    latency_s: float = 0.0
    """From the request to the end of the answer; 0 where nobody wrote it down."""
    recorded_at: datetime | None = None
    observations: tuple[Observation, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The recording of one trial, as it was found in a file."""

    name: str
    """What it is called: names its cassette."""
    file: Path
    source: str
    """The kind of file, in words."""
    exchanges: tuple[Exchange, ...]
    meta: JsonObject = field(default_factory=dict)
    """What the file says about itself."""
    left_out: tuple[str, ...] = ()
    """What of the file is not in the exchanges, in words."""
