"""What a suite says about its recordings: the `[recording]` table of suite.toml."""

from __future__ import annotations

from typing import Literal

from harness.schema.record import Record

BuiltInNormalisation = Literal["dates", "ids", "temporary-paths"]

Pace = Literal["fast", "recorded"]
Front = Literal["http", "direct"]


class Replacement(Record):
    """Text that differs from run to run and means nothing."""

    pattern: str
    """A regular expression."""
    replace: str
    """What stands for it; groups as `\\1`."""


class RecordingRules(Record):
    """How requests are compared, and what is kept of a recording."""

    ignore: tuple[str, ...] = ()
    """Request fields that do not change the answer, beside the built-in ones; dots go deeper, as in
    `metadata.user_id`."""
    normalise: tuple[BuiltInNormalisation | Replacement, ...] = ()
    """Replaced in every text before requests and tool results are compared, and in what is kept
    of a request."""
    redact: tuple[str, ...] = ()
    """Regular expressions of secrets, beside the built-in rules."""
    keep_errors: bool = False
    """Keep retryable errors (408, 409, 429, 5xx) even where the same request succeeded later."""
