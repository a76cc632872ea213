"""docs/scenarios.md shows every key of a scenario with a value, and every choice there is."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from harness.schema.loop_config import Budget
from harness.schema.scenario import CallbackName, Scenario, ScenarioCancel, ScenarioGovernance
from harness.schema.scenario_hook import HookAction, HookPoint
from harness.schema.trajectory import EventKind
from tests.docs.pages import ROOT, blocks, code, prose

PAGE = ROOT / "docs" / "scenarios.md"
SHOWN = "\n".join(block.text for block in blocks(PAGE) if block.language == "yaml")


def keys(value: Any, place: str = "") -> Iterator[str]:
    """Places of all keys, without positions and names of tools."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{place}.{key}"
            yield from keys(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, place)


GIVEN = {place.rsplit(".", 1)[-1] for place in keys(yaml.safe_load(SHOWN))}


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    elif get_origin(annotation) in (tuple, dict, Union, UnionType):
        for argument in get_args(annotation):
            yield from models(argument)


@pytest.mark.parametrize("model", sorted(set(models(Scenario)), key=str))
def test_every_key_is_shown_with_a_value(model: type[BaseModel]):
    if model is Budget:
        return  # its settings are those of the loop
    names = {field.alias or name for name, field in model.model_fields.items()}
    assert names - GIVEN == set()


def choices(annotation: Any) -> tuple[str, ...]:
    found = [one for one in (annotation, *get_args(annotation)) if get_origin(one) is Literal]
    return get_args(found[0])


@pytest.mark.parametrize(
    "annotation",
    [
        HookPoint,
        HookAction,
        ScenarioCancel.model_fields["when"].annotation,
        ScenarioGovernance.model_fields["approval"].annotation,
        Scenario.model_fields["wire_format"].annotation,
    ],
)
def test_every_choice_is_named(annotation: Any):
    assert [value for value in choices(annotation) if value not in SHOWN] == []


@pytest.mark.parametrize("annotation", [CallbackName, EventKind])
def test_every_callback_and_event_is_listed(annotation: Any):
    assert set(get_args(annotation)) - set(code(prose(PAGE))) == set()
