"""The identities of a conversation's requests, each computed from the one before."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import to_json

from harness.cassette.request.canonical import (
    EMPTY_CHAIN,
    CanonicalRequest,
    chain_of,
    parameters_digest,
    request_digest,
)
from harness.schema.record import JsonObject


@dataclass(frozen=True, slots=True)
class _Request:
    """What of a request the next one may share."""

    about: bytes
    """Endpoint and parameters, as they are written."""
    parameters_digest: str
    said: bytes
    """The messages, as they are written."""
    chain: tuple[str, ...]


class Growing:
    """Makes canonical requests, and takes from the last one what the next begins with.

    A request that does not go on with the last one is computed as a whole.
    """

    def __init__(self) -> None:
        """Start before the first request."""
        self._last = _Request(b"", "", b"", ())

    def request(
        self,
        endpoint: str,
        parameters: JsonObject,
        messages: list[JsonObject],
        *,
        is_model_call: bool,
    ) -> CanonicalRequest:
        """What `CanonicalRequest.of` gives."""
        try:
            about, said = to_json([endpoint, parameters]), to_json(messages)
        except ValueError:
            return CanonicalRequest.of(endpoint, parameters, messages, is_model_call=is_model_call)
        # What is written alike is alike. What is alike but for the order of its keys is computed
        # again, to the same.
        before = self._last
        if about == before.about:
            of_parameters = before.parameters_digest
        else:
            of_parameters = parameters_digest(endpoint, parameters)
        chain = before.chain if _begins(said, before.said) else ()
        last = chain[-1] if chain else EMPTY_CHAIN
        chain += chain_of(messages[len(chain) :], last)
        # At once: a loop's helpers may ask from other threads.
        self._last = _Request(about, of_parameters, said, chain)
        return CanonicalRequest(
            endpoint=endpoint,
            parameters=parameters,
            messages=tuple(messages),
            is_model_call=is_model_call,
            parameters_digest=of_parameters,
            chain=chain,
            digest=request_digest(of_parameters, chain[-1] if chain else EMPTY_CHAIN),
        )


def _begins(said: bytes, before: bytes) -> bool:
    """Whether a list begins with all that is in another, both as they are written."""
    start = before.removesuffix(b"]")
    return said.startswith(start) and said[len(start) : len(start) + 1] in (b",", b"]")
