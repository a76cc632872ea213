"""Holding an output against its schema and its validators."""

from __future__ import annotations

import copy

from harness.errors import error_line
from harness.protocols import OutputSpec
from harness.schema.json_schema import schema_violation
from harness.schema.record import Json, storable


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
            if not isinstance(complaint, str | None):
                found = type(complaint).__name__
                raise TypeError(f"a validator must return text or None, not {found}")
        except Exception as error:  # noqa: BLE001 - a validator that raises rejects the output
            complaint = error_line(error)
        if complaint is not None:
            return storable(complaint)
    return None
