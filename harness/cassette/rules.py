"""A suite's rules for its recordings, ready to be applied."""

from __future__ import annotations

from harness.cassette.canonical import CanonicalRequest
from harness.schema.recording import RecordingRules


class Rules:
    """What does not count when requests are compared."""

    def __init__(self, rules: RecordingRules | None = None) -> None:
        """Prepare them; without any a request stays as it is."""
        self.rules = rules or RecordingRules()

    def request(self, request: CanonicalRequest) -> CanonicalRequest:
        """The request as it is compared and kept; itself where no rule changes it."""
        return request

    def text(self, text: str) -> str:
        """A tool result as it is compared."""
        return text
