"""docs/loop.md says of the settings what the code says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from harness.loop.hooks import Point
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.presets import PRESETS
from harness.schema.scenario_hook import HookPoint
from harness.schema.trajectory import EventKind
from tests.docs.pages import ROOT, Table, code, tables

LOOP = ROOT / "docs" / "loop.md"


def table(*heads: str) -> list[Table]:
    """The tables of the page that begin with these columns."""
    found = [table for table in tables(LOOP) if table.heads[: len(heads)] == heads]
    assert found
    return found


def first_column(found: Table) -> list[str]:
    return [name for row in found.rows for name in code(row[0])]


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from inner_models(argument)


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every setting with its default as JSON; one that only holds others is left out."""
    for name, field in model.model_fields.items():
        inner = list(inner_models(field.annotation))
        default = field.get_default(call_default_factory=True)
        if field.is_required():
            yield prefix + name, "required"
        elif not isinstance(default, BaseModel):
            yield prefix + name, json.dumps(default)
        many = "[]" if default == () else ""
        for each in inner:
            yield from settings(each, f"{prefix}{name}{many}.")


def test_every_setting_is_there_with_its_default_and_no_other() -> None:
    written = [
        (code(row[0])[0], row[1]) for found in table("setting", "default") for row in found.rows
    ]
    assert sorted(written) == sorted(settings(LoopConfig))


def test_every_setting_says_what_it_does() -> None:
    rows = [row for found in table("setting", "default") for row in found.rows]
    assert [row[0] for row in rows if len(row) != 4 or not row[2]] == []


def test_every_value_of_a_choice_is_named() -> None:
    told = {
        code(row[0])[0]: " ".join(row)
        for found in table("setting", "default")
        for row in found.rows
    }
    choices = {
        name: [value for value in values if isinstance(value, str)]
        for name, field in LoopConfig.model_fields.items()
        if (
            values := [
                value
                for part in (field.annotation, *get_args(field.annotation))
                for value in get_args(part)
            ]
        )
    }
    missing = [
        (name, value)
        for name, values in choices.items()
        for value in values
        if value not in told[name]
    ]
    assert missing == []


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.dumps(value)


def test_every_preset_is_there_with_its_values_and_no_others() -> None:
    (found,) = table("setting", "`default`")
    names = [code(head)[0] for head in found.heads[1:]]
    written = {
        name: {code(row[0])[0]: row[place] for row in found.rows if row[place]}
        for place, name in enumerate(names, start=1)
    }
    assert written == {name: dict(flat(values)) for name, values in PRESETS.items()}


def test_every_ending_is_there_with_what_to_do() -> None:
    (found,) = table("`termination_reason`")
    assert first_column(found) == [reason.value for reason in TerminationReason]
    assert all(len(row) == 3 and all(row) for row in found.rows)


def test_every_event_is_there() -> None:
    (found,) = table("event")
    assert sorted(first_column(found)) == sorted(get_args(EventKind))


def test_every_hook_is_there() -> None:
    (found,) = table("hook")
    assert sorted(first_column(found)) == sorted(get_args(Point))
    assert get_args(Point) == get_args(HookPoint)
