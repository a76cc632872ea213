"""Wrong values of every key: the message names the key, and says nothing of how it is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from harness.errors import BadInputError, ConfigurationError
from harness.loader.reading import validated
from harness.loader.suite import load_suite
from harness.schema.loop_config import LoopConfig
from harness.schema.scenario import Scenario
from harness.schema.suite_file import SuiteFile
from harness.schema.task_file import TaskFile
from tests.loader.suite_folders import SUITE, make_suite, write

INTERNAL = re.compile(
    r"function-|\[key\]|is-instance|dictionary|json-or-python|union|unicode|Tuple|pydantic|object"
    r"|array|Input|Extra|\.str\b|\.dict\b|_\w+\(\)"
)
WRONG: tuple[Any, ...] = (
    *("wrong", "", 3.7, -7, True, None, [], [3], ["wrong"], [[]], {}, {"wrong": 1}),
    *({"wrong": "wrong"}, {"wrong": {}}, [{}], [{"wrong": 1}]),
    *(
        [{"tool_called": "a", "text_contains": "b"}],
        [{"tokens_above": "x"}],
        [{"tokens_above": -1}],
    ),
)


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from inner_models(argument)


def paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Every key, the tables within tables included; what is listed or named is tested whole."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield (key,)
        if not str(field.annotation).startswith(("tuple", "dict")):
            for inner in inner_models(field.annotation):
                yield from ((key, *path) for path in paths(inner))


def at(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    ("model", "path"),
    [
        pytest.param(model, path, id=f"{model.__name__}-{'.'.join(path)}")
        for model in (LoopConfig, Scenario, SuiteFile, TaskFile)
        for path in paths(model)
    ],
)
def test_a_wrong_value_is_told_of_with_its_key_and_without_internals(model, path):
    needed: dict[type[BaseModel], dict[str, Any]] = {
        Scenario: {"id": "A", "expect": {"iterations": 1}},
        SuiteFile: {"name": "s", "version": 1, "system": "", "variants": [{"name": "v"}]}
        | {"model": {"provider": "openai", "name": "m"}},
    }
    messages = []
    for value in WRONG:
        try:
            validated(model, needed.get(model, {}) | at(path, value), where="file")
        except ConfigurationError as error:
            messages.append(str(error))
    for message in messages:
        assert INTERNAL.search(message) is None, message
        assert path[-1] in message or path[0] in message, message
    anything = path[-1] in ("args", "signal_data", "output", "data", "returns")
    assert messages or anything, "no value of it is wrong"


STOP_WHEN = "give one of tool_called, text_contains and tokens_above"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([{"tool_called": "a", "text_contains": "b"}], f"stop_when[0]: {STOP_WHEN}"),
        ([{}], f"stop_when[0]: {STOP_WHEN}"),
        ([3], "stop_when[0] = 3: give text or a table"),
        (
            [{"tool_caled": "a"}],
            "stop_when[0].tool_caled: unknown key; did you mean 'tool_called'?",
        ),
        (
            [{"tokens_above": "x"}],
            "stop_when[0].tokens_above = 'x': input should be a valid integer; "
            "write one, without quotes",
        ),
        ("x", "stop_when = 'x': input should be a list"),
    ],
)
@pytest.mark.parametrize("source", ["toml", "yaml", "set"])
def test_a_choice_of_text_and_table_is_explained_wherever_it_is_written(
    tmp_path: Path, source: str, value: Any, words: str
):
    overrides, key = [], "loop."
    written = re.sub(r'"(\w+)": ', r"\1 = ", json.dumps(value))
    if source == "yaml":
        config = {"id": "A", "config": {"stop_when": value}, "expect": {"iterations": 1}}
        write(tmp_path / "a.yaml", yaml.safe_dump(config))
        key = "config: "
    elif source == "toml":
        make_suite(tmp_path, suite=SUITE.replace("[loop]", f"[loop]\nstop_when = {written}"))
    else:
        make_suite(tmp_path)
        overrides = [f"loop.stop_when={written}"]
    with pytest.raises(BadInputError) as raised:
        load_suite(tmp_path, overrides=overrides)
    assert f": {key}{words}" in str(raised.value)
    assert INTERNAL.search(str(raised.value)) is None


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        (
            {"event_counts": {"run_start": 1}},
            "unknown event 'run_start'; did you mean 'run_started'?",
        ),
        ({"requests": {"one": {}}}, "expect.requests: keys are numbers of model calls, from 1"),
        ({"requests": {0: {}}}, "expect.requests: keys are numbers of model calls, from 1"),
        ({"usage_by_tag": {"man": {}}}, "unknown kind of model call 'man'; did you mean 'main'?"),
        ({"termination_reason": "complete"}, "unknown value; did you mean 'completed'?"),
    ],
)
def test_a_wrong_name_or_number_in_expect_is_answered_with_what_there_is(
    tmp_path: Path, expect: Any, words: str
):
    write(tmp_path / "a.yaml", yaml.safe_dump({"id": "A", "expect": expect}))
    with pytest.raises(BadInputError) as raised:
        load_suite(tmp_path)
    assert words in str(raised.value)
    assert INTERNAL.search(str(raised.value)) is None


def test_a_close_match_spares_a_long_list_of_names(tmp_path: Path):
    with pytest.raises(ConfigurationError) as raised:
        validated(LoopConfig, {"max_iteration": 1}, where="file")
    assert str(raised.value) == ("file: max_iteration: unknown key; did you mean 'max_iterations'?")
    with pytest.raises(ConfigurationError, match="known: breaker, budget"):
        validated(LoopConfig, {"zzz": 1}, where="file")


def test_yaml_that_cannot_be_read_is_told_of_with_its_line(tmp_path: Path):
    write(tmp_path / "a.yaml", "id: a\n\tturns: x\n")
    with pytest.raises(BadInputError) as raised:
        load_suite(tmp_path)
    assert "not valid YAML: line 2, column 1: found a tab character" in str(raised.value)
    assert "unicode" not in str(raised.value)


def test_a_least_reward_is_a_number_or_a_table():
    step = {"name": "a", "min_reward": "x"}
    with pytest.raises(ConfigurationError) as raised:
        validated(TaskFile, {"steps": [step]}, where="task.toml")
    assert str(raised.value) == (
        "task.toml: steps[0].min_reward = 'x': give a number, or a table of rewards and numbers"
    )
