"""Times of foreign files."""

from __future__ import annotations

from datetime import UTC, datetime


def in_utc(time: datetime | None) -> datetime | None:
    """A time in UTC; one without a zone is meant so.

    Raises:
        ValueError: there is no such year in UTC.
    """
    if time is None:
        return None
    try:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise ValueError("not a time in UTC") from None


def read_time(value: object) -> datetime | None:
    """A time as ISO 8601 spells it; None where there is none, since nothing hangs on it."""
    try:
        return in_utc(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except ValueError:
        return None
