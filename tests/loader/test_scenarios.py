from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import BadInputError
from harness.loader.scenarios import is_scenarios, scenario_loop
from harness.loader.suite import load_suite
from harness.schema.loop_config import LoopConfig
from tests.loader.suite_folders import make_suite, write

SMALL: dict[str, Any] = {"id": "A", "turns": [{"text": "done"}], "expect": {"iterations": 1}}


def scenario(**keys: Any) -> str:
    return yaml.safe_dump(SMALL | keys)


def settings(tmp_path: Path, text: str, *overrides: str, preset: Any = None) -> LoopConfig:
    write(tmp_path / "one.yaml", text)
    suite = load_suite(tmp_path, overrides=overrides, preset=preset)
    return scenario_loop(suite.tasks[0], suite.variants[0])


def refused(tmp_path: Path, text: str, *overrides: str) -> str:
    write(tmp_path / "one.yaml", text)
    with pytest.raises(BadInputError) as raised:
        load_suite(tmp_path, overrides=overrides)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_folder_is_a_suite_of_its_name_with_all_files_and_ids(tmp_path: Path):
    folder = tmp_path / "small"
    write(folder / "b.yml", scenario(id="B"))
    write(folder / "a.yaml", yaml.safe_dump([SMALL, SMALL | {"id": "C"}]))
    write(folder / "notes.txt", "not a scenario")
    suite = load_suite(folder)
    assert suite.name == "small"
    assert [task.name for task in suite.tasks] == ["A", "C", "B"]
    assert [variant.name for variant in suite.variants] == ["scripted"]


def test_one_file_is_a_suite_too(tmp_path: Path):
    suite = load_suite(write(tmp_path / "only.yaml", scenario()))
    assert (suite.name, [task.name for task in suite.tasks]) == ("only", ["A"])


def test_a_folder_with_a_suite_file_is_no_folder_of_scenarios(tmp_path: Path):
    make_suite(tmp_path)
    write(tmp_path / "extra.yaml", scenario())
    assert not is_scenarios(tmp_path)
    assert [task.name for task in load_suite(tmp_path).tasks] == ["count"]


def test_what_a_scenario_says_wins_over_set_and_set_over_the_preset(tmp_path: Path):
    text = scenario(preset="sigil", config={"max_attempts": 7}, budget={"max_tokens": 5})
    loop = settings(
        tmp_path,
        text,
        "loop.max_iterations=4",
        "loop.max_attempts=2",
        "loop.budget.max_tokens=9",
        "loop.budget.max_tool_calls=1",
    )
    assert (loop.max_iterations, loop.max_attempts, loop.text_only) == (4, 7, "error")
    assert (loop.budget.max_tokens, loop.budget.max_tool_calls) == (5, 1)


@pytest.mark.parametrize(("keys", "streams"), [({}, True), ({"stream": False}, False)])
def test_streaming_is_set_where_the_scenario_does_not_say_otherwise(tmp_path, keys, streams):
    assert settings(tmp_path, scenario(**keys), "loop.stream=true").stream is streams


def test_the_runs_preset_is_for_scenarios_that_name_none(tmp_path: Path):
    assert settings(tmp_path, scenario(), preset="onering").max_iterations == 50
    assert settings(tmp_path, scenario(preset="default"), preset="onering").max_iterations == 20


def test_neither_repeats_nor_a_model_can_be_set(tmp_path: Path):
    assert refused(tmp_path, scenario(), "repeats=3").startswith("--set repeats=3: a scenario")
    message = refused(tmp_path, scenario(), "model.temperature=1")
    assert message.startswith("--set model.temperature")
    assert "ask no model" in message
    message = refused(tmp_path, scenario(), "disclosure=full")
    assert message.startswith("--set disclosure: scenarios are given no skills")


HOOK = {"hook": "before_tool", "action": "skip", "result": "x"}
TOOLS = {"look": {"returns": 1}}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"titel": "x"}, ["titel: unknown key", "'title'"]),
        ({"expect": {"iteration": 1}}, ["expect.iteration: unknown key", "'iterations'"]),
        ({"expect": {"iterations": "1"}}, ["expect.iterations = '1'", "integer"]),
        ({"expect": {"requests": {2: {"role": []}}}}, ["expect.requests", "role: unknown key"]),
        ({"expect": {"requests": {"two": {}}}}, ["expect.requests", "two"]),
        ({"expect": {"termination_reason": "done"}}, ["expect.termination_reason = 'done'"]),
        ({"expect": {"events": ["run_stopped"]}}, ["expect.events[0] = 'run_stopped'"]),
        ({"preset": "sigill"}, ["preset = 'sigill'", "did you mean 'sigil'?"]),
        ({"config": {"max_iteration": 1}}, ["config: max_iteration: unknown", "max_iterations"]),
        ({"budget": {"max_tool_call": 1}}, ["budget.max_tool_call: unknown key"]),
        ({"tools": {"a": {"return": 1}}}, ["tools.a.return: unknown key", "'returns'"]),
        ({"tools": {"a": {}}}, ["tools.a", "exactly one of returns, raises, fails"]),
        ({"tools": {"a": {"returns": 1, "fails": "x"}}}, ["tools.a", "exactly one of"]),
        ({"tools": {"a": {"fails": None}}}, ["tools.a", "exactly one of"]),
        ({"tools": {"a": {"returns": 1, "data": 2}}}, ["tools.a", "data goes with signal"]),
        ({"tools": {"a": {"sequence": []}}}, ["tools.a", "at least one"]),
        ({"tools": {"a": {"sequence": [{"boom": 1}]}}}, ["tools.a.sequence[0].boom: unknown"]),
        ({"tools": {"a": {"returns": 1, "registers": ["b"]}}}, ["'a' registers 'b'", "hidden"]),
        ({"tools": {"a": {"raises": True}}}, ["tools.a.raises = True", "in quotes it is text"]),
        ({"turns": [{"text": "x", "raises": "y"}]}, ["turns[0]", "or raises, or repeat"]),
        ({"turns": [{"raises": "y", "exception": "Boom"}]}, ["turns[0].exception = 'Boom'"]),
        ({"turns": [{"raises": "y", "exception": "UnicodeDecodeError"}]}, ["takes a text"]),
        ({"turns": [{"text": "x", "exception": "TypeError"}]}, ["exception goes with raises"]),
        ({"turns": [{"repeat": True}]}, ["repeat needs a turn before it"]),
        ({"turns": [{"text": "a"}, {"repeat": True}, {"text": "b"}]}, ["repeat must be the last"]),
        ({"turns": [{"calls": [{"name": "a"}]}]}, ["turns[0].calls[0].id: missing"]),
        ({"turns": [{"text": "a", "stop": "end"}]}, ["turns[0].stop = 'end'"]),
        ({"hooks": [HOOK | {"text": "y"}]}, ["hooks[0]", "before_tool with skip takes no text"]),
        ({"hooks": [{"hook": "before_tool", "action": "skip"}]}, ["hooks[0]", "needs result"]),
        ({"hooks": [{"hook": "after_tool", "action": "skip"}]}, ["after_tool cannot skip"]),
        ({"hooks": [{"hook": "pause_check", "action": "pause"}]}, ["needs resume_after_s"]),
        ({"hooks": [HOOK | {"tool": "nope"}]}, ["hooks names 'nope'"]),
        ({"hooks": [{"hook": "before_run", "action": "raise", "at": 1}]}, ["takes no at"]),
        ({"cancel": {"when": "before_start", "at": 1}}, ["cancel", "takes no at"]),
        ({"cancel": {"when": "later"}}, ["cancel.when = 'later'"]),
        ({"callbacks": {"on_tool_cal": "raises"}}, ["callbacks", "on_tool_cal"]),
        ({"governance": {"approval": {"look": "modify"}}, "tools": TOOLS}, ["modified_args"]),
        ({"governance": {"deny": {"nope": "no"}}}, ["governance.deny names 'nope'"]),
        ({"output": {"schema": {"type": "objekt"}}}, ["output.schema", "not a JSON Schema"]),
        (
            {"output": {"schema": {}, "validators": [{"min_len": {}}]}},
            ["output.validators[0]", "min_length"],
        ),
        ({"runs": 0}, ["runs = 0"]),
        ({"expect": {}}, ["expect: expects nothing", "give a key"]),
        ({"expect": {"config_error": None, "usage": {}}}, ["expect: expects nothing"]),
        ({"expect": {"events": [], "error_contains": ""}}, ["expect: expects nothing"]),
        (
            {"expect": {"config_error": "x", "output": 1, "iterations": 1}},
            ["expect: config_error stands alone", "nothing is compared with output, iterations"],
        ),
        ({"cancel": {"when": "in_tool"}}, ["cancel: in_tool cannot happen", "no tools"]),
        ({"hidden_tools": TOOLS, "tools": {"a": {"returns": 1}}}, ["'look' is never offered"]),
        ({"config": {"stop_when": ["mine"]}}, ["config.stop_when[0] = 'mine'", "tokens_above"]),
        ({"messages": []}, ["messages"]),
    ],
)
def test_a_mistake_is_named_with_file_scenario_and_key(tmp_path: Path, keys, words):
    message = refused(tmp_path, scenario(**keys))
    assert message.startswith(f"{tmp_path / 'one.yaml'}: scenario 'A': ")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["one.yaml: holds no scenario"]),
        ("[]", ["one.yaml: holds no scenario"]),
        ("- 7", ["one.yaml: scenarios[0] = 7"]),
        ("turns: []\nexpect: {}", ["one.yaml: scenarios[0]: id: missing"]),
        ("- {id: a/b, turns: [], expect: {}}", ["scenario 'a/b'", "id = 'a/b'"]),
        ("id: [", ["one.yaml: not valid YAML", "line"]),
        ("id: A\nid: B\n", ["not valid YAML", "line 2", "'id' is there twice"]),
        ("id: on\nexpect: {}", ["scenarios[0]: id = True", "in quotes it is text"]),
        (scenario() + "tools: {on: {returns: 1}}", ["key True is not text", "in quotes"]),
        (scenario() + "system: 2026-01-01", ["system = datetime.date(2026, 1, 1)", "in quotes"]),
        (scenario() + "tools: {a: {returns: &a [*a]}}", ["nested too deeply"]),
        (scenario() + "tools: {a: {returns: .nan}}", ["tools.a.returns = nan"]),
    ],
)
def test_a_file_that_holds_no_scenarios_is_refused_with_its_place(tmp_path, text, words):
    message = refused(tmp_path, text)
    for word in words:
        assert word in message


def test_files_in_sub_folders_are_not_skipped_silently(tmp_path: Path):
    write(tmp_path / "more" / "deep" / "two.yml", scenario(id="B"))
    write(tmp_path / ".hidden" / "three.yaml", "")
    message = refused(tmp_path, scenario())
    assert message.startswith(f"{tmp_path / 'more' / 'deep' / 'two.yml'}: ")
    assert "read without its sub-folders" in message
    (tmp_path / "more" / "deep" / "two.yml").unlink()
    assert len(load_suite(tmp_path).tasks) == 1


def test_an_id_that_is_there_twice_is_refused_with_both_files(tmp_path: Path):
    write(tmp_path / "two.yaml", scenario())
    message = refused(tmp_path, scenario())
    for word in ("one.yaml", "two.yaml", "'A'"):
        assert word in message


@pytest.mark.parametrize(
    "keys", [{"config": {"max_iterations": -1}}, {"output": {"schema": {"type": "objekt"}}}]
)
def test_settings_that_no_loop_takes_are_left_to_a_scenario_about_them(tmp_path: Path, keys):
    write(tmp_path / "one.yaml", scenario(**keys, expect={"config_error": "output"}))
    assert [task.name for task in load_suite(tmp_path).tasks] == ["A"]
