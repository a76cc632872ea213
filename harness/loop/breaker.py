"""The breaker: a call that keeps failing in the same way is not run again."""

from __future__ import annotations

import json

from harness.schema.record import JsonObject


class Breaker:
    """Counts how often the same tool with the same arguments gave the same error."""

    def __init__(self, limit: int) -> None:
        """Take the number of failures after which a call is no longer run; 0 is never."""
        self.limit = limit
        self._failures: dict[tuple[str, str], tuple[str, int]] = {}

    def is_open(self, name: str, arguments: JsonObject) -> bool:
        """Whether the call is not to be run."""
        _, count = self._failures.get(_key(name, arguments), ("", 0))
        return bool(self.limit) and count >= self.limit

    def record(self, name: str, arguments: JsonObject, error: str | None) -> None:
        """Take what came of a call; a success, or another error, starts the count again."""
        key = _key(name, arguments)
        last, count = self._failures.pop(key, ("", 0))
        if error is not None:
            self._failures[key] = (error, count + 1 if error == last else 1)


def _key(name: str, arguments: JsonObject) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True)
