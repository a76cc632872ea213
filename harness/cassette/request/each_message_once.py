"""Changing requests at a cost that does not grow with the conversation."""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable
from typing import cast

from harness.cassette.request.canonical import CanonicalRequest
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject


class EachMessageOnce:
    """Changes requests, and looks at each message only when it is new.

    Every turn brings the whole conversation again: all of it would cost more with each turn.
    """

    def __init__(
        self,
        parameters: Callable[[CanonicalRequest], tuple[str, JsonObject]],
        message: Callable[[Json], Json],
    ) -> None:
        """Say how to change endpoint and parameters, and how a message."""
        self._parameters = parameters
        self._message = message
        self._seen: dict[str, JsonObject | None] = {}
        """What a message became, by the digest of the conversation that ends with it; None where
        it stayed as it is."""
        self._unchanged: set[str] = set()
        """Digests of parameters that stay as they are."""

    def __call__(self, request: CanonicalRequest) -> CanonicalRequest:
        """The changed request; itself where nothing changes."""
        messages = tuple(map(self._changed, request.chain, request.messages))
        same = all(map(operator.is_, messages, request.messages))
        endpoint, parameters = request.endpoint, request.parameters
        if request.parameters_digest not in self._unchanged:
            endpoint, parameters = self._parameters(request)
            if endpoint == request.endpoint and parameters == request.parameters:
                self._unchanged.add(request.parameters_digest)
            else:
                same = False
        if same:
            return request
        return CanonicalRequest.of(
            endpoint, parameters, messages, is_model_call=request.is_model_call
        )

    def _changed(self, chain: str, message: JsonObject) -> JsonObject:
        if chain not in self._seen:
            changed = cast(JsonObject, self._message(message))
            self._seen[chain] = None if changed == message else changed
        known = self._seen[chain]
        return message if known is None else known


def redacting(redactor: Redactor) -> EachMessageOnce:
    """Takes secrets out of the requests of one trial."""

    def parameters(request: CanonicalRequest) -> tuple[str, JsonObject]:
        encoded = request.parameters.get("base64")
        if request.is_model_call or not isinstance(encoded, str):
            clean = cast(JsonObject, redactor.json(request.parameters))
        else:
            data = redactor.data(base64.b64decode(encoded))
            clean = {"base64": base64.b64encode(data).decode()}
        return redactor.text(request.endpoint), clean

    return EachMessageOnce(parameters, redactor.json)
