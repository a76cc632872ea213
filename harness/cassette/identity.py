"""The ids of lines, computed from what the lines say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from harness.cassette.canonical import DIGEST_CHARS, EMPTY_CHAIN, chain_after, digest
from harness.cassette.format import (
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    VerdictLine,
)
from harness.cassette.tape import ToolKey, verdict_id
from harness.schema.record import JsonObject


def parameters_id(line: ParametersLine) -> str:
    """The id of a set of parameters."""
    return digest([line.endpoint, line.body])[:DIGEST_CHARS]


def chain_of(parent: str | None, messages: Iterable[JsonObject]) -> str:
    """The digest of a conversation that goes on from another."""
    return reduce(chain_after, messages, EMPTY_CHAIN if parent is None else parent)


def request_of(parameters: str, chain: str) -> str:
    """The digest of a request."""
    return digest([parameters, chain])[:DIGEST_CHARS]


def tool_id(line: ToolLine) -> str:
    """The id of a tool call."""
    return ToolKey(
        line.interaction,
        line.position,
        line.name,
        line.arguments,
        line.identity,
        line.timeout_s,
        line.ordinal,
    ).id


def mistake(line: Line) -> str | None:
    """Why the ids of a line are not those of what it says; None where they are."""
    match line:
        case ParametersLine():
            right = {"id": (line.id, parameters_id(line))}
        case InteractionLine():
            request = request_of(line.parameters, line.chain)
            right = {
                "chain": (line.chain, chain_of(line.parent, line.add)),
                "id": (line.id.partition(".")[0], request),
            }
        case ToolLine():
            right = {"id": (line.id, tool_id(line))}
        case VerdictLine():
            right = {"id": (line.id, verdict_id(line.transcript_digest, line.tests_digest))}
        case _:
            right = {}
    for name, (there, computed) in right.items():
        if there != computed:
            return f"its {name} is not that of what it says ({there}, not {computed})"
    return None
