"""What a trial said, and what its tools gave when they ran again, beside what is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from harness.cassette.replay.in_order import RequestDifference
from harness.cassette.replay.tool_differences import Difference
from harness.cassette.request.canonical import canonical_json, writable
from harness.cassette.show.text_diff import difference
from harness.redaction import Redactor
from harness.schema.record import JsonObject
from harness.schema.results import RequestChange, ToolChange
from harness.values import ToolOutcome

_MOST_CHANGES = 100
_MOST_REQUESTS = 10
_SHOWN_CHARS = 80
_BEFORE_CHARS = 20
"""How much is shown of what comes before the first difference."""


def request_changes(differences: Iterable[RequestDifference]) -> tuple[RequestChange, ...]:
    """The first model calls that said something else; they hold no secret."""
    return tuple(
        RequestChange(call=one.call, cause=one.cause, difference=one.difference)
        for one in islice(differences, _MOST_REQUESTS)
    )


def tool_changes(differences: Iterable[Difference], redactor: Redactor) -> tuple[ToolChange, ...]:
    """Each call, in one line and as a diff."""
    return tuple(_change(one, redactor) for one in islice(differences, _MOST_CHANGES))


def _change(found: Difference, redactor: Redactor) -> ToolChange:
    # Secrets go first: what is cut in the middle is not found any more.
    arguments = redactor.text(canonical_json(writable(found.arguments)).decode())
    old, new = redactor.text(found.recorded.content), redactor.text(found.live.content)
    pairs = enumerate(zip(old, new, strict=False))
    parting = next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))
    start = max(0, parting - _BEFORE_CHARS)
    summary = (
        f"{found.name} {_cut(arguments, 0)}: recorded {_shown(found.recorded, old, start)}, "
        f"now {_shown(found.live, new, start)}"
    )
    before, now = (_without_text(one, redactor) for one in (found.recorded, found.live))
    # Most often only the text differs: then nothing stands around it.
    shown = difference(old, new)
    if before != now:
        shown = difference(before | {"content": old}, now | {"content": new})
    return ToolChange(summary=summary, difference=shown)


def _without_text(outcome: ToolOutcome, redactor: Redactor) -> JsonObject:
    asks = None if outcome.asks is None else redactor.json(outcome.asks.model_dump(mode="json"))
    return {"status": outcome.status, "asks": asks}


def _shown(outcome: ToolOutcome, text: str, start: int) -> str:
    status = "" if outcome.status == "ok" else f" ({outcome.status.replace('_', ' ')})"
    return f"{_cut(text, start)!r}{status}"


def _cut(text: str, start: int) -> str:
    part = text[start : start + _SHOWN_CHARS]
    return f"{'…' if start else ''}{part}{'…' if start + len(part) < len(text) else ''}"
