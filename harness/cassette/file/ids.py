"""The ids of lines, computed from what the lines say."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cassette.file.tape import ToolKey, verdict_id
from harness.cassette.format import (
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    VerdictLine,
)
from harness.cassette.request.canonical import (
    EMPTY_CHAIN,
    chain_of,
    parameters_digest,
    request_digest,
)
from harness.schema.record import JsonObject


def end_of(parent: str | None, messages: Sequence[JsonObject]) -> str:
    """The digest of a conversation that goes on from another."""
    start = EMPTY_CHAIN if parent is None else parent
    return (start, *chain_of(messages, start))[-1]


def mistake(line: Line) -> str | None:
    """Why the ids of a line are not those of what it says; None where they are."""
    match line:
        case ParametersLine():
            right = {"id": (line.id, parameters_digest(line.endpoint, line.body))}
        case InteractionLine():
            request = request_digest(line.parameters, line.chain)
            right = {
                "chain": (line.chain, end_of(line.parent, line.add)),
                "id": (line.id.partition(".")[0], request),
            }
        case ToolLine():
            right = {"id": (line.id, ToolKey.of(line).id)}
        case VerdictLine():
            right = {"id": (line.id, verdict_id(line.transcript_digest, line.tests_digest))}
        case _:
            right = {}
    for name, (there, computed) in right.items():
        if there != computed:
            return f"its {name} is not that of what it says ({there}, not {computed})"
    return None
