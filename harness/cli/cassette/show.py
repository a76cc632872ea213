"""`harness cassette show`: a cassette as a tree of conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from harness.cassette.format import StoredResponse
from harness.cassette.view import CassetteView, InteractionView, read
from harness.cli import FINE
from harness.cli.cassette.ls import summary
from harness.cli.options import make_command
from harness.cli.terminal import Terminal
from harness.errors import BadInputError, ModelCallError
from harness.providers.catalog import all_dialects, recorded_turn
from harness.schema.messages import Text, ToolCall
from harness.schema.record import Json, JsonObject


@make_command("show", example="harness cassette show cassettes/basics/contact-card/0.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
def command(terminal: Terminal, file: Path) -> int:
    """Print a cassette as the tree of its conversations, each branch with its variants."""
    if not file.is_file():
        raise BadInputError(f"{file}: no such file; `harness cassette ls` lists them")
    view = read(file)
    data = summary(view).model_dump(mode="json") | {
        "tree": [
            entry.line.model_dump(mode="json")
            | {
                "endpoint": entry.endpoint,
                "parent": entry.parent,
                "children": list(entry.children),
                "variants": list(entry.variants),
                "tools": [tool.model_dump(mode="json") for tool in entry.tools],
            }
            for entry in view.interactions.values()
        ],
        "verdict_lines": [verdict.model_dump(mode="json") for verdict in view.verdicts],
    }
    terminal.result(data, _tree(view))
    return FINE


def _tree(view: CassetteView) -> Iterator[str]:
    head = view.header
    yield f"{head.suite} · {head.task} · repeat {head.repeat}"
    yield f"finished: {', '.join(view.trials) or 'no variant'}"
    for root in view.roots:
        yield from _branch(view, root, depth=0)
    for verdict in view.verdicts:
        rewards = ", ".join(f"{name} {value:g}" for name, value in verdict.verdict.rewards.items())
        yield f"verdict ({verdict.variant}): {rewards or verdict.verdict.error}"


def _branch(view: CassetteView, name: str, depth: int) -> Iterator[str]:
    """A conversation line by line; where it parts, each branch is indented under its variants."""
    pending: str | None = name
    while pending is not None:
        entry = view.interactions[pending]
        space = "  " * depth
        yield f"{space}[{', '.join(entry.variants)}]"
        yield from (space + line for line in _interaction(entry))
        if len(entry.children) > 1:
            for child in entry.children:
                yield from _branch(view, child, depth + 1)
            return
        pending = entry.children[0] if entry.children else None


def _interaction(entry: InteractionView) -> Iterator[str]:
    said = list(entry.line.add)
    if entry.parent is not None and said and said[0].get("role") == "assistant":
        # The parent's answer, sent back.
        said.pop(0)
    for message in said:
        yield from _labelled(str(message.get("role", "request")), _content(message))
    yield from _labelled("answer", _answer(entry.endpoint, entry.line.response))
    for tool in entry.tools:
        yield from _labelled(
            "ran", f"{tool.name}({_compact(tool.arguments)}): {tool.result.status}"
        )
        if not entry.children:
            # Else it is in what the next request says.
            yield from _labelled("result", tool.result.content)


def _content(message: JsonObject) -> str:
    content = message.get("content", message)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(_block, content))
    return _compact(content)


def _block(block: Json) -> str:
    """Plain text as it is; any other block as JSON."""
    if isinstance(block, dict) and block.keys() == {"type", "text"}:
        return str(block["text"])
    return _compact(block)


def _answer(endpoint: str, response: StoredResponse) -> str:
    """The answer in neutral terms, where its dialect is known."""
    body = response.body
    dialect = next((d for d in all_dialects() if d.name == endpoint), None)
    if dialect is None or response.status != 200:
        return f"status {response.status}: {_compact(body)}"
    try:
        turn = recorded_turn(dialect, body)
    except ModelCallError:
        return _compact(body)
    parts = []
    for block in turn.content:
        match block:
            case Text(text=text):
                parts.append(text)
            case ToolCall(name=name, arguments=arguments):
                parts.append(f"calls {name}({arguments})")
            case _:
                parts.append(_compact(block.model_dump(mode="json")))
    return "\n".join(parts)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _labelled(label: str, text: str) -> Iterator[str]:
    first, *rest = text.split("\n")
    yield f"{label + ':':<11}{first}".rstrip()
    for line in rest:
        yield f"{'':<11}{line}".rstrip()
