"""What a recorded call says, as passages that people read and compare."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import canonical_json
from harness.errors import ModelCallError
from harness.providers.catalog import dialects_by_name, recorded_turn
from harness.schema.messages import ModelTurn, Text, ToolCall
from harness.schema.record import Json, JsonObject

_DIALECTS = dialects_by_name()
_ROLES = {"model": "assistant"}
_SIGNED = re.compile(r"[A-Za-z0-9+/_=-]{200,}")
"""A signature or a picture: nobody reads it, but a change in it is to be seen."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a call under one heading."""

    title: str
    text: str


def answered_turn(endpoint: str, response: StoredResponse) -> ModelTurn | None:
    """The neutral turn in an answer; None where it is an error, or not from a known endpoint."""
    dialect = _DIALECTS.get(endpoint)
    if dialect is None or response.status != 200:
        return None
    try:
        return recorded_turn(dialect, response.body)
    except ModelCallError:
        return None


def answer(turn: ModelTurn | None, response: StoredResponse) -> list[Passage]:
    """The passages of an answer."""
    if turn is None:
        if response.is_out_of_time:
            return [Passage("No answer", "The run's time was over.")]
        title = "Answer" if response.status == 200 else f"Answer: status {response.status}"
        body = plain(response.body)
        return [Passage(title, _SIGNED.sub(_measured, body) if response.type == "base64" else body)]
    passages = []
    for block in turn.content:
        match block:
            case Text(text=text):
                passages.append(Passage("Answer", text))
            case ToolCall(name=name, arguments=arguments):
                passages.append(Passage(f"Call {name}", arguments_text(arguments)))
            case _:
                data = block.data if hasattr(block, "data") else block.model_dump(mode="json")
                passages.extend(_block(data, "assistant", {}))
    return passages or [Passage("Answer", "")]


def said(message: JsonObject, names: dict[str, str]) -> list[Passage]:
    """The passages of a request's message, whichever vendor's.

    Args:
        message: One message in canonical form.
        names: Names of tools by the id of a call; calls in the message are added.
    """
    role = str(message.get("role", message.get("type", "message")))
    role = _ROLES.get(role, role)
    if "role" not in message:
        return list(_block(message, role, names))
    passages: list[Passage] = []
    content = message.get("content", message.get("parts"))
    if role == "tool":
        name = message.get("tool_name") or names.get(str(message.get("tool_call_id")), "a tool")
        return [Passage(f"Result of {name}", _joined(content))]
    if message.get("reasoning_content") or message.get("thinking"):
        thought = message.get("reasoning_content") or message.get("thinking")
        passages.append(Passage("Thinking", plain(thought)))
    if isinstance(content, str):
        passages.append(Passage(_title(role), content))
    elif isinstance(content, list):
        for block in content:
            passages += _block(block, role, names)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        passages += _block(call, role, names)
    return passages


def _block(block: Json, role: str, names: dict[str, str]) -> Iterator[Passage]:
    """One block, part or item of a message."""
    if not isinstance(block, dict):
        yield Passage(_title(role), plain(block))
        return
    call = _call(block)
    if call is not None:
        name, arguments, identifier = call
        names[identifier] = name
        yield Passage(f"Call {name}", arguments_text(arguments))
        return
    result = _result(block, names)
    if result is not None:
        yield result
    elif isinstance(block.get("text"), str):
        yield Passage("Thinking" if block.get("thought") else _title(role), str(block["text"]))
    elif isinstance(block.get("thinking"), str):
        yield Passage("Thinking", str(block["thinking"]))
    else:
        kind = str(block.get("type", role)).replace("_", " ")
        yield Passage(_title(kind), plain(block))


def _call(block: JsonObject) -> tuple[str, Json, str] | None:
    """Name, arguments and id of a call, however a vendor writes it."""
    for inner, arguments in (("function", "arguments"), ("functionCall", "args")):
        function = block.get(inner)
        if isinstance(function, dict) and "name" in function:
            identifier = block.get("id", function.get("id"))
            return str(function["name"]), function.get(arguments), str(identifier)
    if block.get("type") == "tool_use":
        return str(block.get("name")), block.get("input"), str(block.get("id"))
    if block.get("type") == "function_call":
        return str(block.get("name")), block.get("arguments"), str(block.get("call_id"))
    return None


def _result(block: JsonObject, names: dict[str, str]) -> Passage | None:
    """A tool's result, however a vendor writes it."""
    kind = block.get("type")
    if kind == "tool_result":
        name = names.get(str(block.get("tool_use_id")), "a tool")
        failed = ", an error" if block.get("is_error") else ""
        return Passage(f"Result of {name}{failed}", _joined(block.get("content")))
    if kind == "function_call_output":
        name = names.get(str(block.get("call_id")), "a tool")
        return Passage(f"Result of {name}", _joined(block.get("output")))
    function = block.get("functionResponse")
    if isinstance(function, dict):
        return Passage(f"Result of {function.get('name')}", plain(function.get("response")))
    return None


def _joined(content: Json) -> str:
    """The text of a tool's result: a text, or blocks of it."""
    if isinstance(content, list):
        return "\n".join(
            str(block["text"])
            if isinstance(block, dict) and isinstance(block.get("text"), str)
            else plain(block)
            for block in content
        )
    return plain(content)


def settings(endpoint: str, parameters: JsonObject, names: dict[str, str]) -> list[Passage]:
    """The passages of everything but the conversation: system text, tools, settings."""
    passages: list[Passage] = []
    rest: JsonObject = {}
    for key, value in parameters.items():
        if key in ("system", "instructions", "systemInstruction"):
            passages += _system(value, names)
        elif key == "tools" and isinstance(value, list):
            passages.append(Passage("Tools", "\n".join(map(_tool, declared_tools(value)))))
        else:
            rest[key] = value
    text = "\n".join(f"{key}: {plain(value)}" for key, value in rest.items() if value is not None)
    title = f"Settings of {endpoint}" if endpoint in _DIALECTS else endpoint
    return [Passage(title, text), *passages]


def _system(value: Json, names: dict[str, str]) -> list[Passage]:
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = value["parts"]
    blocks = value if isinstance(value, list) else [value]
    return [passage for block in blocks for passage in _block(block, "system", names)]


def is_the_models(message: JsonObject) -> bool:
    """Whether a message of a conversation is the model's own, in any vendor's format."""
    role = message.get("role")
    return role in ("assistant", "model") or (
        role is None and message.get("type") in ("function_call", "reasoning")
    )


def declared_tools(value: list[Json]) -> Iterator[Json]:
    """The tools of a request one by one: Google declares several together."""
    for tool in value:
        declared = tool.get("functionDeclarations") if isinstance(tool, dict) else None
        yield from declared if isinstance(declared, list) else [tool]


def _tool(tool: Json) -> str:
    """One line for a tool: its name, its arguments, and what it is for."""
    if not isinstance(tool, dict):
        return plain(tool)
    inner = tool.get("function")
    inner = inner if isinstance(inner, dict) else tool
    if "name" not in inner:
        return plain(tool)
    schemas = ("parameters", "input_schema", "parametersJsonSchema")
    schema = next((inner[key] for key in schemas if key in inner), None)
    # All of it would bury the conversation; a digest shows that it changed.
    mark = hashlib.sha256(canonical_json(inner)).hexdigest()[:8]
    fields = schema.get("properties") if isinstance(schema, dict) else None
    arguments = ", ".join(fields) if isinstance(fields, dict) else ""
    described, _, more = str(inner.get("description", "")).strip().partition("\n")
    shown = f"{inner['name']}({arguments}) [{mark}]: {described}".rstrip(": ")
    return f"{shown} …" if more else shown


def arguments_text(arguments: Json) -> str:
    """Arguments as lines, one for each; as they are where they are no JSON object."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    if not isinstance(arguments, dict):
        return plain(arguments)
    lines = []
    for key, value in arguments.items():
        text = plain(value)
        if "\n" in text:
            indented = "\n".join(f"  {line}" for line in text.split("\n"))
            lines.append(f"{key}:\n{indented}")
        else:
            lines.append(f"{key}: {text}")
    return "\n".join(lines)


def plain(value: Json) -> str:
    """A text as it is, anything else as JSON; long encoded parts by their size and digest."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value:
        return "\n".join(map(plain, value))
    return _SIGNED.sub(_measured, json.dumps(value, ensure_ascii=False))


def _measured(found: re.Match[str]) -> str:
    data = found.group()
    return f"({len(data):,} characters, {hashlib.sha256(data.encode()).hexdigest()[:8]})"


def _title(kind: str) -> str:
    return kind[:1].upper() + kind[1:]
