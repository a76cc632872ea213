"""`harness cassette`: look at recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from harness.analysis.numbers import count, plural
from harness.cassette.format import StoredResponse
from harness.cassette.view import CassetteView, InteractionView, read
from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.terminal import Terminal, table
from harness.errors import BadInputError, ModelCallError
from harness.providers.catalog import all_dialects, recorded_turn
from harness.schema.messages import Text, ToolCall
from harness.schema.record import Json, JsonObject, Record

_FOLDER = Path("cassettes")


class CassetteSummary(Record):
    """One file in short."""

    file: str
    suite: str
    task: str
    repeat: int
    variants: tuple[str, ...]
    """Variants whose recording is finished."""
    interactions: int
    tools: int
    verdicts: int
    models: tuple[str, ...]
    recorded_on: str | None
    """Day of the latest recording."""
    size_bytes: int


@click.group("cassette", epilog="Example: harness cassette ls cassettes/basics")
def command() -> None:
    """Look at recordings: list them, or read one as a conversation."""


@make_command("ls", example="harness cassette ls cassettes/basics")
@click.argument("path", type=click.Path(path_type=Path), default=_FOLDER)
def _ls(terminal: Terminal, path: Path) -> int:
    """List the cassettes in a folder (default: cassettes), every line of them checked."""
    if not path.exists():
        raise BadInputError(f"{path}: no such folder or file; record with `harness run`")
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    found = [_summary(read(file)) for file in files]
    data = {"cassettes": [one.model_dump(mode="json") for one in found]}
    terminal.result(data, _listing(found) if found else [f"{path} holds no cassette."])
    return FINE


def _summary(view: CassetteView) -> CassetteSummary:
    between = view.recorded_between
    return CassetteSummary(
        file=str(view.path),
        suite=view.header.suite,
        task=view.header.task,
        repeat=view.header.repeat,
        variants=tuple(sorted(view.trials)),
        interactions=len(view.interactions),
        tools=len(view.tools),
        verdicts=len(view.verdicts),
        models=view.models,
        recorded_on=between[1].date().isoformat() if between else None,
        size_bytes=view.size_bytes,
    )


def _listing(found: list[CassetteSummary]) -> Iterator[str]:
    heading = ["file", "variants", "model calls", "tool calls", "bytes", "model", "recorded on"]
    rows = [
        [
            one.file,
            ", ".join(one.variants),
            count(one.interactions),
            count(one.tools),
            count(one.size_bytes),
            ", ".join(one.models),
            one.recorded_on or "–",
        ]
        for one in found
    ]
    yield from table([heading, *rows], right=(2, 3, 4))
    size = sum(one.size_bytes for one in found)
    yield f"{plural(len(found), 'cassette')}, {plural(size, 'byte')}"


@make_command("show", example="harness cassette show cassettes/basics/contact-card/0.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
def _show(terminal: Terminal, file: Path) -> int:
    """Print a cassette as the tree of its conversations, each branch with its variants."""
    if not file.is_file():
        raise BadInputError(f"{file}: no such file; `harness cassette ls` lists them")
    view = read(file)
    data = _summary(view).model_dump(mode="json") | {
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


command.add_command(_ls)
command.add_command(_show)
