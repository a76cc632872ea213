from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.loader.output import output_spec
from harness.loader.task.loading import load_task
from harness.protocols import OutputSpec
from harness.schema.record import Json
from tests.loader.suite_folders import OUTPUT, make_task, write

CHECKS = """
from dataclasses import dataclass


@dataclass
class Rule:
    n: int


def validate(output):
    return None if len(output["result"]) >= Rule(3).n else "too short"


def preview(output):
    return f"{len(output['result'])} letters"
"""


def spec_of(folder: Path, additions: str, checks: str | None = None) -> OutputSpec:
    make_task(folder, config=OUTPUT + additions)
    if checks is not None:
        write(folder / "checks.py", checks)
    spec = output_spec(load_task(folder))
    assert spec is not None
    return spec


def test_a_task_without_output_has_no_spec(tmp_path: Path):
    assert output_spec(load_task(make_task(tmp_path / "t"))) is None


def test_the_output_tool_is_named_and_described_by_the_task(tmp_path: Path):
    spec = spec_of(tmp_path / "t", 'name = "answer"\ndescription = "Hand it in."')
    assert spec.tool.name == "answer"
    assert spec.tool.description == "Hand it in."
    assert spec.tool.parameters["required"] == ["result"]
    assert spec.validators == ()
    assert spec.reflection_handler is None


def test_functions_of_checks_py_validate_and_preview(tmp_path: Path):
    additions = 'validators = ["checks:validate"]\nreflection_handler = "checks:preview"'
    spec = spec_of(tmp_path / "t", additions, CHECKS)
    assert spec.validators[0]({"result": "ab"}) == "too short"
    assert spec.validators[0]({"result": "abc"}) is None
    assert spec.reflection_handler is not None
    assert spec.reflection_handler({"result": "ab"}) == "2 letters"
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == [
        "checks.py",
        "environment",
        "instruction.md",
        "solution",
        "task.toml",
        "tests",
    ]


def test_two_tasks_may_each_have_their_checks_py(tmp_path: Path):
    additions = 'validators = ["checks:validate"]'
    first = spec_of(tmp_path / "a", additions, "def validate(output):\n    return 'first'\n")
    second = spec_of(tmp_path / "b", additions, "def validate(output):\n    return 'second'\n")
    assert first.validators[0]({}) == "first"
    assert second.validators[0]({}) == "second"


def test_an_installed_module_serves_where_the_folder_has_no_such_file(tmp_path: Path):
    spec = spec_of(tmp_path / "t", 'reflection_handler = "json:dumps"')
    assert spec.reflection_handler is not None
    assert spec.reflection_handler({"result": "x"}) == '{"result": "x"}'


def test_min_length_counts_letters_and_items_and_a_missing_field_as_none(tmp_path: Path):
    spec = spec_of(tmp_path / "t", 'validators = [{min_length = {field = "result", n = 2}}]')
    (check,) = spec.validators
    assert check({"result": "ab"}) is None
    assert check({"result": ["a", "b"]}) is None
    too_short: list[Json] = [{"result": "a"}, {"result": 12}, {}, [], None]
    for output in too_short:
        assert "at least 2" in str(check(output))


def test_equals_compares_as_json_does(tmp_path: Path):
    spec = spec_of(tmp_path / "t", 'validators = [{equals = {field = "ok", value = true}}]')
    (check,) = spec.validators
    assert check({"ok": True}) is None
    others: list[Json] = [{"ok": 1}, {"ok": "true"}, {}, []]
    for output in others:
        assert check(output) is not None


def test_a_preview_shows_fields_and_says_which_are_missing(tmp_path: Path):
    template = 'reflection_handler = {returns = "{result} {n:.1f} {deep[key]} {{x}}"}'
    handler = spec_of(tmp_path / "t", template).reflection_handler
    assert handler is not None
    assert handler({"result": "r", "n": 1, "deep": {"key": "k"}}) == "r 1.0 k {x}"
    assert handler({"n": "many"}) == "<result is missing> many <deep[key] is missing> {x}"
    assert handler(None) == "<result is missing> <n is missing> <deep[key] is missing> {x}"


@pytest.mark.parametrize("kind", ["raises", "rejects"])
def test_a_handler_may_be_told_to_fail(tmp_path: Path, kind: str):
    handler = spec_of(
        tmp_path / "t", f'reflection_handler = {{{kind} = "boom"}}'
    ).reflection_handler
    assert handler is not None
    with pytest.raises((RuntimeError, ValueError), match="boom"):
        handler({})


@pytest.mark.parametrize(
    ("additions", "words"),
    [
        ('validators = ["validate"]', ["validators[0] = 'validate'", "'module:function'"]),
        ('validators = ["checks:validat"]', ["'checks:validat'", "did you mean 'validate'?"]),
        ('validators = ["nowhere_at_all:f"]', ["validators[0]", "no module 'nowhere_at_all'"]),
        ("validators = [{min_len = {n = 1}}]", ["validators[0]", "did you mean 'min_length'?"]),
        ("validators = [{min_length = {n = 1}}]", ["validators[0].min_length", "field: missing"]),
        ("validators = [{}]", ["validators[0]", "exactly one key"]),
        ("reflection_handler = {shows = 'x'}", ["reflection_handler", "returns"]),
        ("reflection_handler = {returns = 3}", ["reflection_handler.returns = 3", "text"]),
        ("reflection_handler = {returns = 'a {'}", ["reflection_handler.returns", "'a {'"]),
    ],
)
def test_a_mistake_is_named_with_file_key_and_value(
    tmp_path: Path, additions: str, words: list[str]
):
    with pytest.raises(ConfigurationError) as raised:
        spec_of(tmp_path / "t", additions, CHECKS)
    message = str(raised.value)
    assert str(tmp_path / "t" / "task.toml") in message
    assert "metadata.harness.output" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("checks", "word"),
    [("def validate(:\n", "SyntaxError"), ("1 / 0\n", "ZeroDivisionError")],
)
def test_a_checks_py_that_cannot_run_is_an_error_that_names_it(
    tmp_path: Path, checks: str, word: str
):
    with pytest.raises(ConfigurationError, match=rf"checks\.py fails with {word}"):
        spec_of(tmp_path / "t", 'validators = ["checks:validate"]', checks)


def test_a_schema_that_is_none_is_refused(tmp_path: Path):
    config = "[metadata.harness.output]\nschema = {type = 'objekt'}"
    with pytest.raises(ConfigurationError, match=r"output\.schema: not a JSON Schema.*objekt"):
        load_task(make_task(tmp_path / "t", config=config))
