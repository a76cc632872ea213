"""JSON Schemas that people write: whether one can be used, and what breaks it.

References are resolved within the schema and to the published meta-schemas, never over a network.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft202012Validator, validator_for
from jsonschema_specifications import (  # type: ignore[import-untyped]
    REGISTRY as META_SCHEMAS,
)
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from harness.schema.record import Json, JsonObject


def schema_problem(schema: JsonObject) -> str | None:
    """Why something cannot be used as a schema, in words, or None."""
    try:
        text = json.dumps(schema, allow_nan=False)
    except RecursionError:
        return "it is nested too deeply, or a $ref leads back to itself"
    except ValueError as error:
        return str(error)
    return _problem(text)


@lru_cache(maxsize=1000)
def _problem(text: str) -> str | None:
    """The same, once per schema: a suite's trials share a few."""
    schema: JsonObject = json.loads(text)
    dialect = schema.get("$schema", Draft202012Validator.META_SCHEMA["$id"])
    if not isinstance(dialect, str) or META_SCHEMAS.get(dialect.rstrip("#")) is None:
        return f"unknown $schema {dialect!r}; leave it out"
    try:
        _validator(schema).check_schema(schema)
        _follow_references(schema, dialect)
        # A reference that leads back to itself shows only in use.
        _most_relevant_error({}, schema)
    except SchemaError as error:
        return str(error.message)
    except RecursionError:
        return "it is nested too deeply, or a $ref leads back to itself"
    except ValueError as error:
        return str(error)
    return None


def schema_violation(value: Json, schema: JsonObject) -> str | None:
    """The most relevant way in which a value breaks a schema, in words, or None; never raises."""
    try:
        error = _most_relevant_error(value, schema)
    except Exception as failure:  # noqa: BLE001 - a value that cannot be checked is not valid
        return f"it cannot be checked: {type(failure).__name__}: {failure}"
    if error is None:
        return None
    place = "".join(f"[{key!r}]" for key in error.absolute_path)
    return f"{place}: {error.message}" if place else str(error.message)


def _validator(schema: JsonObject) -> type[Any]:
    validator: type[Any] = validator_for(schema, default=Draft202012Validator)
    return validator


def _most_relevant_error(value: Json, schema: JsonObject) -> ValidationError | None:
    # With a registry given, the library fetches nothing.
    validator = _validator(schema)(schema, registry=META_SCHEMAS)
    error: ValidationError | None = best_match(validator.iter_errors(value))
    return error


def _follow_references(schema: JsonObject, dialect: str) -> None:
    specification = specification_with(dialect)
    root: Resource[Any] = specification.create_resource(schema)
    resolver = META_SCHEMAS.with_resource("", root).resolver_with_root(root)
    seen = set()
    pending = [(root, resolver)]
    while pending:
        resource, resolver = pending.pop()
        if id(resource.contents) in seen or not isinstance(resource.contents, dict):
            continue
        seen.add(id(resource.contents))
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in resource.contents:
                reference = resource.contents[keyword]
                try:
                    found = resolver.lookup(reference)
                except Unresolvable:
                    raise ValueError(f"{keyword} {reference!r} leads nowhere in it") from None
                pending.append((specification.create_resource(found.contents), found.resolver))
        pending += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
