"""Holding an output against its schema and its validators."""

from __future__ import annotations

import copy

import jsonschema

from harness.protocols import OutputSpec
from harness.schema.record import Json, JsonObject


def schema_violation(value: Json, schema: JsonObject) -> str | None:
    """The most relevant way in which a value breaks a JSON Schema, in words, or None."""
    validator = jsonschema.validators.validator_for(schema)(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is None:
        return None
    place = "".join(f"[{key!r}]" for key in error.absolute_path)
    return f"{place}: {error.message}" if place else str(error.message)


def first_failure(output: Json, spec: OutputSpec) -> str | None:
    """Why an output is not valid: schema first, then validators in order; the first failure wins.

    Each validator gets its own copy, so none can change what the next one sees.
    """
    violation = schema_violation(output, spec.tool.parameters)
    if violation is not None:
        return violation
    for validator in spec.validators:
        try:
            complaint = validator(copy.deepcopy(output))
        except Exception as error:  # noqa: BLE001 - a validator that raises rejects the output
            complaint = f"{type(error).__name__}: {error}"
        if complaint is not None:
            return complaint
    return None
