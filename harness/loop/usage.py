"""Token sums over model calls, in four buckets and by what a call was for."""

from __future__ import annotations

from harness.schema.messages import Usage
from harness.schema.trajectory import CallTag, UsageTotal

BUCKETS = ("input", "output", "cache_write", "cache_read")


def add_usage(total: UsageTotal, usage: Usage | None) -> UsageTotal:
    """The sum with one more answered call; a call that reported nothing is counted as missing."""
    reported = {
        bucket: value for bucket in BUCKETS if (value := getattr(usage, bucket, None)) is not None
    }
    if not reported:
        return total.model_copy(update={"missing_calls": total.missing_calls + 1})
    sums = {bucket: (getattr(total, bucket) or 0) + value for bucket, value in reported.items()}
    return total.model_copy(update=sums)


def tokens_of(total: UsageTotal) -> int:
    """All tokens of all buckets."""
    return sum(getattr(total, bucket) or 0 for bucket in BUCKETS)


class UsageMeter:
    """Adds up the usage of one run."""

    def __init__(self) -> None:
        self.total = UsageTotal()
        self.by_tag: dict[CallTag, UsageTotal] = {}

    def add(self, usage: Usage | None, tag: CallTag) -> None:
        """Charge one answered model call."""
        self.total = add_usage(self.total, usage)
        self.by_tag[tag] = add_usage(self.by_tag.get(tag, UsageTotal()), usage)

    @property
    def tokens(self) -> int:
        """All tokens of all buckets so far."""
        return tokens_of(self.total)
