"""What a request adds to its conversation: ours beside the recorded one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.cassette.request.canonical import canonical_json
from harness.schema.record import Json, JsonObject

_ANSWERED = ("assistant", "model")
_ANSWERED_ITEMS = ("function_call", "reasoning")
"""What an answer holds beside messages, in OpenAI's responses."""
_HOLDS_TEXT = ("text", "content", "output", "parts", "functionResponse", "response")


def last_turn(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """The messages that come after the latest answer; all of them where there is none."""
    for at in range(len(messages), 0, -1):
        if _is_answer(messages[at - 1]):
            return messages[at:]
    return messages


def _is_answer(message: JsonObject) -> bool:
    return message.get("role") in _ANSWERED or message.get("type") in _ANSWERED_ITEMS


def said(messages: Sequence[JsonObject]) -> str:
    """All that a turn says."""
    return "\n\n".join(text for message in messages for text in _texts(message))


def compared_text(messages: Sequence[JsonObject], same_text: Callable[[str], str]) -> str:
    """The same as it is compared: without what is normalised, and trailing space."""
    text = same_text(said(messages)).strip()
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _texts(value: Json) -> list[str]:
    """The texts in a message, in whatever vendor's format."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if not isinstance(value, dict):
        return []
    held = [value[key] for key in _HOLDS_TEXT if key in value]
    # An image, or whatever else it is: as it stands.
    return _texts(held) if held else [canonical_json(value).decode()]
