"""The reasoning in blocks that only one vendor's format knows, as text."""

from __future__ import annotations

from collections.abc import Iterator

from harness.schema.messages import VendorBlock
from harness.schema.record import Json

_KEYS = ("thinking", "reasoning_content", "reasoning")
"""Where Anthropic, Ollama and the servers that speak OpenAI's chat format have it."""


def thinking(block: VendorBlock) -> str:
    """What a model thought before it answered; empty where a block is something else."""
    data = block.data
    if data.get("type") == "reasoning":
        return "\n\n".join((*_texts(data.get("summary")), *_texts(data.get("content"))))
    if data.get("thought") is True:
        return _text(data.get("text"))
    return next(filter(None, (_text(data.get(key)) for key in _KEYS)), "")


def _texts(parts: Json) -> Iterator[str]:
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and (text := _text(part.get("text"))):
            yield text


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
