"""What a model reads of its tools in text: a call to copy for each, and the results."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.messages import ToolResult
from harness.schema.record import Json

MALFORMED = "malformed_call"
"""Name of a call of which no name can be read; no tool is called so."""


def example(schema: Json) -> Json:
    """A value in the shape of a JSON Schema, with placeholders."""
    if not isinstance(schema, dict):
        return "..."
    if isinstance(choices := schema.get("enum"), list):
        return "|".join(str(choice) for choice in choices)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        return {name: example(inner) for name, inner in properties.items()}
    match schema.get("type"):
        case "object":
            return {}
        case "array":
            return [example(schema.get("items"))]
        case "integer" | "number" | "boolean" as plain:
            # A number here would be copied as the answer, and quotes would be copied too.
            return f"<{plain}>"
    description = schema.get("description")
    return description if isinstance(description, str) else "..."


def introduced(result: ToolResult) -> str:
    """A result, introduced by its call's id and name."""
    word = "Error from" if result.is_error else "Result of"
    return f"{word} {result.call_id} ({result.name}):\n{result.content}"


def in_order(results: Sequence[str], notes: str) -> str:
    """The results of a turn, after what is said about the answer that asked for them."""
    return "\n\n".join(part for part in (notes, *results) if part)
