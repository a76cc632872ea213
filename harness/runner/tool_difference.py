"""What a tool gave when it ran again, beside what is recorded of it: in one line of text."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cassette.canonical import canonical_json, writable
from harness.cassette.tool_results import Difference
from harness.redaction import Redactor
from harness.values import ToolOutcome

_SHOWN_CHARS = 80
_BEFORE_CHARS = 20
"""How much is shown of what comes before the first difference."""


def first_difference(differences: Sequence[Difference], redactor: Redactor) -> str | None:
    """Name the call and show where the results part, or None where none differs."""
    if not differences:
        return None
    first = differences[0]
    # Secrets go first: what is cut in the middle is not found any more.
    arguments = redactor.text(canonical_json(writable(first.arguments)).decode())
    old, new = redactor.text(first.recorded.content), redactor.text(first.live.content)
    pairs = enumerate(zip(old, new, strict=False))
    parting = next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))
    start = max(0, parting - _BEFORE_CHARS)
    return (
        f"{first.name} {_cut(arguments, 0)}: recorded {_shown(first.recorded, old, start)}, "
        f"now {_shown(first.live, new, start)}"
    )


def _shown(outcome: ToolOutcome, text: str, start: int) -> str:
    status = "" if outcome.status == "ok" else f" ({outcome.status.replace('_', ' ')})"
    return f"{_cut(text, start)!r}{status}"


def _cut(text: str, start: int) -> str:
    part = text[start : start + _SHOWN_CHARS]
    return f"{'…' if start else ''}{part}{'…' if start + len(part) < len(text) else ''}"
