"""Ids for the tool calls of Ollama's answers, which seldom bear any."""

from __future__ import annotations

import hashlib

from harness.providers.wire_json import messages_of
from harness.schema.record import Json, JsonObject


class CallIds:
    """Makes up ids for the calls of one answer, where the server gives none.

    They depend on nothing but the conversation's ids and the answer's own time, so that a replay
    makes up the same ones; the time keeps them apart from those that have left the conversation.
    """

    def __init__(self, body: JsonObject) -> None:
        messages = messages_of(body) or []
        self._taken = {id_ for message in messages for id_ in _ids(message)}
        self._next = len(self._taken) + 1

    def given(self, answer: Json) -> Json:
        """The answer, or a piece of it, with an id in every call."""
        message = answer.get("message") if isinstance(answer, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if not (isinstance(answer, dict) and isinstance(message, dict) and isinstance(calls, list)):
            return answer
        time = str(answer.get("created_at") or "")
        named = [
            {**call, "id": call.get("id") or self._new(time)} if isinstance(call, dict) else call
            for call in calls
        ]
        return answer | {"message": message | {"tool_calls": named}}

    def _new(self, time: str) -> str:
        stamp = hashlib.sha256(time.encode(errors="replace")).hexdigest()[:6]
        while (id_ := f"call_{self._next}_{stamp}") in self._taken:
            self._next += 1
        self._taken.add(id_)
        return id_


def _ids(message: JsonObject) -> list[str]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    found = [call.get("id") for call in calls if isinstance(call, dict)]
    return [id_ for id_ in found if isinstance(id_, str)]
