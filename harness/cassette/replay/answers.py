"""What the fronts and the tools ask of a trial's session, and what may stand before one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from harness.cassette.file.tape import ToolKey
from harness.cassette.format import InteractionLine, StoredResponse, StoredResult
from harness.cassette.replay.explain import Miss
from harness.cassette.request.canonical import CanonicalRequest
from harness.cassette.request.rules import Rules
from harness.errors import ReplayMissError
from harness.redaction import Redactor


class Answers(Protocol):
    """A session as the fronts and the tools know it; `Session` says what each of these does."""

    @property
    def recording(self) -> bool:
        """Whether what is missing is recorded instead of missed."""
        ...

    @property
    def where(self) -> str:
        """The cassette, as messages name it."""
        ...

    @property
    def record_hint(self) -> str:
        """Command that records what a miss lacks."""
        ...

    @property
    def redactor(self) -> Redactor:
        """What removes secrets."""
        ...

    @property
    def rules(self) -> Rules:
        """What does not count when requests and tool results are compared."""
        ...

    @property
    def last(self) -> str | None:
        """The model call that tool calls belong to."""
        ...

    def claim(self, request: CanonicalRequest) -> InteractionLine | None:
        """The recorded answer; None where the call is to go to the live model."""
        ...

    def claim_as_sent(self, sent: str) -> InteractionLine | None:
        """The recorded answer to these very bytes; None says only that `claim` is to be asked."""
        ...

    def append(
        self,
        request: CanonicalRequest,
        response: StoredResponse,
        *,
        latency_s: float,
        first_byte_s: float | None = None,
    ) -> None:
        """Record a live answer."""
        ...

    def miss(self, miss: Miss) -> ReplayMissError:
        """Remember a miss; gives the error to raise."""
        ...

    def tool_result(self, key: ToolKey) -> StoredResult | None:
        """The recorded result of a tool call; None where there is none."""
        ...

    def record_tool(self, key: ToolKey, result: StoredResult, sandbox: str | None) -> None:
        """Record a tool call's result, already redacted."""
        ...

    def explain_tool(self, key: ToolKey) -> Miss:
        """Why a tool call has no recorded result, in words."""
        ...

    def running_tool(self) -> AbstractContextManager[None]:
        """While a tool runs, in this context and copies of it."""
        ...

    def spend(self, seconds: float) -> None:
        """Let the trial's time pass."""
        ...

    def remembering(self) -> AbstractContextManager[None]:
        """Whatever goes wrong inside ends the trial."""
        ...


class Before:
    """Stands before a session and passes everything on; a subclass does some of it otherwise."""

    def __init__(self, answers: Answers) -> None:
        """Pass on to another one."""
        self._answers = answers

    @property
    def recording(self) -> bool:
        """See `Answers`, here and below."""
        return self._answers.recording

    @property
    def where(self) -> str:  # noqa: D102
        return self._answers.where

    @property
    def record_hint(self) -> str:  # noqa: D102
        return self._answers.record_hint

    @property
    def redactor(self) -> Redactor:  # noqa: D102
        return self._answers.redactor

    @property
    def rules(self) -> Rules:  # noqa: D102
        return self._answers.rules

    @property
    def last(self) -> str | None:  # noqa: D102
        return self._answers.last

    def claim(self, request: CanonicalRequest) -> InteractionLine | None:  # noqa: D102
        return self._answers.claim(request)

    def claim_as_sent(self, sent: str) -> InteractionLine | None:
        """None, always: whoever stands before a session wants to see the request in `claim`."""
        return None

    def append(  # noqa: D102
        self,
        request: CanonicalRequest,
        response: StoredResponse,
        *,
        latency_s: float,
        first_byte_s: float | None = None,
    ) -> None:
        self._answers.append(request, response, latency_s=latency_s, first_byte_s=first_byte_s)

    def miss(self, miss: Miss) -> ReplayMissError:  # noqa: D102
        return self._answers.miss(miss)

    def tool_result(self, key: ToolKey) -> StoredResult | None:  # noqa: D102
        return self._answers.tool_result(key)

    def record_tool(self, key: ToolKey, result: StoredResult, sandbox: str | None) -> None:  # noqa: D102
        self._answers.record_tool(key, result, sandbox)

    def explain_tool(self, key: ToolKey) -> Miss:  # noqa: D102
        return self._answers.explain_tool(key)

    def running_tool(self) -> AbstractContextManager[None]:  # noqa: D102
        return self._answers.running_tool()

    def spend(self, seconds: float) -> None:  # noqa: D102
        self._answers.spend(seconds)

    def remembering(self) -> AbstractContextManager[None]:  # noqa: D102
        return self._answers.remembering()
