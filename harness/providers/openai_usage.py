"""Token counts as OpenAI's formats report them."""

from __future__ import annotations

from harness.providers.wire_json import count
from harness.schema.messages import Usage
from harness.schema.record import Json


def usage_of(reported: Json, prompt: str, completion: str) -> Usage | None:
    """The four buckets; None when nothing is reported.

    The vendor counts what was read from or written to a cache among the prompt's tokens; the
    buckets do not overlap.

    Args:
        reported: The `usage` of an answer.
        prompt: What the format calls input tokens.
        completion: What it calls output tokens.
    """
    if not isinstance(reported, dict):
        return None
    details = reported.get(f"{prompt}_details")
    details = details if isinstance(details, dict) else {}
    read, written = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    total = count(reported, prompt)
    usage = Usage(
        input=None if total is None else max(0, total - (read or 0) - (written or 0)),
        output=count(reported, completion),
        cache_write=written,
        cache_read=read,
    )
    return None if usage == Usage() else usage
