"""Random conversations, as odd as callers, models and windows may make them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from harness.schema.messages import (
    Block,
    Message,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from harness.values import ModelRequest

TOOLS = tuple(
    ToolSpec(name=name, description="Run.", parameters=schema)
    for name, schema in (
        ("shell", {"type": "object", "properties": {"x": {"type": "string"}}}),
        ("fs.read", {}),
        ("get_xml", {"properties": {}}),
        ("a_x2E.", {"type": ["object", "null"]}),
    )
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
arguments = (
    objects.map(json.dumps)
    | objects.map(lambda value: json.dumps(value, indent=1))
    | st.text(max_size=8)
    | st.sampled_from(['{"a": NaN}', "[]", "", '{"a": 1e999}', '{"x": "\\ud800"}', '{"a":1'])
)
texts = st.text(max_size=8) | st.sampled_from(["", " \n", "half \ud800 pair", "end \n", "é☃\x85"])
whole_texts = st.text(max_size=5)  # no half surrogate pairs
ids = whole_texts | st.sampled_from(["", "_x_", "a_x2E.", "_x5F_x2E_", "call_1", "toolu_01Ab-c"])
flags = st.booleans()
id_lists = st.lists(ids, min_size=12, max_size=12, unique=True)


@st.composite
def transcripts(
    draw: st.DrawFn,
    lead: st.SearchStrategy[list[VendorBlock]],
    parts: st.SearchStrategy[list[VendorBlock]],
) -> tuple[Message, ...]:
    """Each call is answered in the next user turn; all else may be missing, blank or doubled.

    Args:
        draw: Hypothesis's.
        lead: What a model's turn begins with.
        parts: What a user turn may hold beside text.
    """
    messages: list[Message] = []
    if draw(flags):
        messages += draw(st.lists(_user((), parts), min_size=1, max_size=2))
    fresh = iter(draw(id_lists))
    for _ in range(draw(st.integers(0, 4))):
        calls = [
            ToolCall(id=next(fresh), name=draw(st.sampled_from(TOOLS)).name, arguments=raw)
            for raw in draw(st.lists(arguments, max_size=3))
        ]
        said: list[Block] = [Text(text=text) for text in draw(st.lists(texts, max_size=2))]
        messages.append(Message(role="assistant", content=(*draw(lead), *said, *calls)))
        results: tuple[ToolResult, ...] = tuple(
            ToolResult(call_id=c.id, name=c.name, content=draw(texts), is_error=draw(flags))
            for c in calls
        )
        if draw(flags) or results:
            messages.append(draw(_user(results, parts)))
        if draw(flags):
            messages.append(draw(_user((), parts)))
    return tuple(messages)


def _user(
    results: tuple[ToolResult, ...], parts: st.SearchStrategy[list[VendorBlock]]
) -> st.SearchStrategy[Message]:
    said = st.lists(texts.map(lambda text: Text(text=text)), max_size=2)
    around: st.SearchStrategy[list[Block]] = st.tuples(said, parts).flatmap(
        lambda pair: st.permutations([*pair[0], *pair[1]])
    )
    return st.tuples(around, flags).map(
        lambda drawn: Message(
            role="user",
            content=(*drawn[0], *results) if drawn[1] else (*results, *drawn[0]),
        )
    )


@st.composite
def requests(draw: st.DrawFn, messages: st.SearchStrategy[tuple[Message, ...]]) -> ModelRequest:
    """A request with every setting there is."""
    return ModelRequest(
        model="m",
        system=draw(st.none() | texts),
        messages=draw(messages),
        tools=TOOLS,
        tool_choice=draw(st.sampled_from(["auto", "required", "none", *(t.name for t in TOOLS)])),
        max_output_tokens=draw(st.integers(1, 9)),
        temperature=draw(st.none() | st.floats(0, 1)),
        cache_marks=draw(flags),
    )


def same_arguments(one: str, other: str) -> bool:
    """Equal, or JSON objects that are equal."""
    if one == other:
        return True
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def without_arguments(blocks: tuple[Block, ...]) -> list[Block]:
    """Calls may come back spelled otherwise; compare their arguments apart."""
    return [
        block.model_copy(update={"arguments": ""}) if isinstance(block, ToolCall) else block
        for block in blocks
    ]


def as_json(body: dict[str, Any]) -> dict[str, Any]:
    """Through the encoder that the SDKs use, which refuses what is not JSON."""
    sent: dict[str, Any] = json.loads(
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    )
    return sent


def cuts(places: list[int]) -> Any:
    """A function that cuts each text at these places."""

    def cut(text: str) -> list[str]:
        ends = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
        return [text[a:b] for a, b in pairwise(ends)]

    return cut
