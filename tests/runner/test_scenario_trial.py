"""What a scenario's run is held against, difference by difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.loader.suite import load_suite
from harness.runner.plan import plan
from harness.runner.scenario.parts import unanswered
from harness.runner.trial import TrialSettings, run_trial
from harness.runner.trial_record import Trial
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message, Text, ToolCall, ToolResult

SCENARIO: dict[str, Any] = {
    "id": "A",
    "tools": {"look": {"returns": "seen"}, "bad": {"raises": "boom"}},
    "turns": [
        {
            "text": "I look.",
            "calls": [
                {"name": "look", "id": "l1", "args": {"n": 1}},
                {"name": "bad", "id": "b1", "args": {}},
            ],
            "usage": {"input": 100, "output": 50, "cache_read": 7},
        },
        {"text": "done", "usage": None},
    ],
}
RESULTS = [{"id": "l1", "is_error": False, "contains": "seen"}, {"id": "b1", "is_error": True}]
HOLDS: dict[str, Any] = {
    "termination_reason": "completed",
    "signal": None,
    "signal_data": None,
    "truncated": False,
    "wrapped_up": False,
    "output": {"response": "done"},
    "final_text": "done",
    "confirmed": None,
    "output_seen": True,
    "iterations": 2,
    "model_calls": 2,
    "attempts": 1,
    "tool_calls_made": 2,
    "tools_used": ["look", "bad"],
    "tools_executed": ["look", "bad"],
    "usage": {"input": 100, "cache_write": None, "cache_read": 7, "missing_calls": 1},
    "usage_by_tag": {"main": {"output": 50}},
    "error_contains": "",
    "callback_errors": 0,
    "events": ["run_started", "tool_completed", "tool_failed", "run_completed"],
    "event_counts": {"tool_failed": 1},
    "forbidden_events": ["model_error"],
    "terminal_events": 1,
    "paused_before_call": None,
    "tool_arguments": {"look": [{"n": 1}]},
    "transcript": {"roles": ["user", "assistant", "user", "assistant"], "tool_results": RESULTS},
    "requests": {
        1: {"roles": ["user"], "tools": ["look", "bad"], "tool_results": []},
        2: {
            "roles": ["user", "assistant", "user"],
            "tool_results": RESULTS,
            "contains": ["Do the task.", "I look.", "boom"],
            "last_user_contains": "seen",
        },
    },
}


def played(tmp_path: Path, **keys: Any) -> Trial:
    (tmp_path / "one.yaml").write_text(
        yaml.safe_dump(SCENARIO | keys, sort_keys=False), encoding="utf-8"
    )
    suite = load_suite(tmp_path / "one.yaml")
    (cell,) = plan(suite)
    return run_trial(cell.specs[0], None, TrialSettings(cassettes=tmp_path))


def lines(tmp_path: Path, **keys: Any) -> list[str]:
    trial = played(tmp_path, **keys)
    score = trial.record.scores["scenario"]
    assert score.value == (0.0 if score.explanation else 1.0)
    assert trial.record.outcome == ("failed" if score.explanation else "passed")
    return score.explanation.splitlines()


def test_a_scenario_with_everything_as_expected_passes(tmp_path: Path):
    trial = played(tmp_path, expect=HOLDS)
    assert trial.record.scores["scenario"].explanation == ""
    assert trial.record.outcome == "passed"
    assert trial.record.scores["reward"].value == 1.0
    assert trial.record.cassette is None
    assert (trial.record.trial_id, trial.record.task) == ("A/scripted/0", "A")


@pytest.mark.parametrize(
    ("expect", "line"),
    [
        ({"termination_reason": "error"}, 'termination_reason: expected "error", got "completed"'),
        ({"signal": "GO"}, 'signal: expected "GO", got null'),
        ({"signal_data": {"a": 1}}, 'signal_data: expected {"a": 1}, got null'),
        ({"truncated": True}, "truncated: expected true, got false"),
        ({"wrapped_up": True}, "wrapped_up: expected true, got false"),
        ({"output": {}}, 'output: expected {}, got {"response": "done"}'),
        ({"final_text": "no"}, 'final_text: expected "no", got "done"'),
        ({"confirmed": True}, "confirmed: expected true, got null"),
        ({"output_seen": False}, "output_seen: expected false, got true"),
        ({"iterations": 3}, "iterations: expected 3, got 2"),
        ({"model_calls": 3}, "model_calls: expected 3, got 2"),
        ({"attempts": 0}, "attempts: expected 0, got 1"),
        ({"tool_calls_made": 1}, "tool_calls_made: expected 1, got 2"),
        ({"tools_used": ["bad"]}, 'tools_used: expected ["bad"], got ["look", "bad"]'),
        ({"tools_executed": []}, 'tools_executed: expected [], got ["look", "bad"]'),
        ({"usage": {"cache_write": 0}}, "usage.cache_write: expected 0, got null"),
        ({"usage": {"missing_calls": 0}}, "usage.missing_calls: expected 0, got 1"),
        ({"usage_by_tag": {"main": {"input": 1}}}, "usage_by_tag.main.input: expected 1, got 100"),
        (
            {"usage_by_tag": {"nudge": {}}},
            "usage_by_tag.nudge: expected a model call of this kind, got main",
        ),
        ({"error_contains": "boom"}, 'error_contains: expected "boom", got null'),
        ({"callback_errors": 1}, "callback_errors: expected 1, got 0"),
        ({"event_counts": {"nudged": 1}}, "event_counts.nudged: expected 1, got 0"),
        ({"forbidden_events": ["tool_failed"]}, "forbidden_events.tool_failed: expected 0, got 1"),
        ({"terminal_events": 2}, "terminal_events: expected 2, got 1"),
        ({"paused_before_call": 2}, "paused_before_call: expected 2, got null"),
        (
            {"tool_arguments": {"look": [{"n": 2}]}},
            'tool_arguments.look: expected [{"n": 2}], got [{"n": 1}]',
        ),
        ({"tool_arguments": {"gone": [{}]}}, "tool_arguments.gone: expected [{}], got []"),
        (
            {"transcript": {"roles": ["user"]}},
            'transcript.roles: expected ["user"], got ["user", "assistant", "user", "assistant"]',
        ),
        (
            {"requests": {2: {"tool_results": RESULTS[:1]}}},
            "requests[2].tool_results: expected [l1], got [l1, b1]",
        ),
        (
            {"requests": {2: {"tool_results": RESULTS[::-1]}}},
            "requests[2].tool_results: expected [b1, l1], got [l1, b1]",
        ),
        (
            {"requests": {2: {"tool_results": [{"id": "l1", "is_error": True}, {"id": "b1"}]}}},
            "requests[2].tool_results[0].is_error: expected true, got false",
        ),
        (
            {"requests": {2: {"tool_results": [{"id": "l1", "contains": "x"}, {"id": "b1"}]}}},
            'requests[2].tool_results[0].contains: expected "x", got "seen"',
        ),
        (
            {"requests": {2: {"roles": ["user"]}}},
            'requests[2].roles: expected ["user"], got ["user", "assistant", "user"]',
        ),
        ({"requests": {2: {"tools": []}}}, 'requests[2].tools: expected [], got ["look", "bad"]'),
        (
            {"requests": {1: {"contains": ["x"]}}},
            'requests[1].contains: expected "x", got "Do the task."',
        ),
        (
            {"requests": {1: {"last_user_contains": "x"}}},
            'requests[1].last_user_contains: expected "x", got "Do the task."',
        ),
        ({"requests": {3: {}}}, "requests[3]: expected a model call, got 2 model calls"),
        (
            {"config_error": "handler"},
            'config_error: expected one that contains "handler", got none',
        ),
    ],
)
def test_a_difference_is_one_line_of_id_field_expected_and_got(tmp_path: Path, expect, line):
    assert lines(tmp_path, expect=expect) == [f"A: {line}"]


def test_events_are_compared_as_a_subsequence(tmp_path: Path):
    expect = ["run_started", "model_request", "tool_failed", "run_completed"]
    assert lines(tmp_path, expect={"events": expect}) == []


def test_the_first_event_that_is_missing_is_named_with_what_came_instead(tmp_path: Path):
    expect = ["tool_failed", "attempt_completed", "tool_completed", "run_completed"]
    assert lines(tmp_path, expect={"events": expect}) == [
        "A: events: expected tool_completed after [tool_failed, attempt_completed],"
        " got [run_completed]"
    ]
    (line,) = lines(tmp_path, expect={"events": ["nudged"]})
    assert line.startswith("A: events: expected nudged, got [run_started, ")


def test_an_ending_that_differs_is_told_of_with_the_runs_error(tmp_path: Path):
    turns = [SCENARIO["turns"][0]]
    error = '"the script has no answer to model call 2; add a turn to it"'
    assert lines(tmp_path, turns=turns, expect={"termination_reason": "completed"}) == [
        f'A: termination_reason: expected "completed", got "model_error" ({error})'
    ]
    assert lines(tmp_path, turns=turns, expect={"attempts": 1, "final_text": "done"}) == [
        'A: final_text: expected "done", got "I look."',
        f"A: error: expected none, got {error}",
    ]


def test_turns_that_were_never_asked_for_are_told_of_beside_another_difference(tmp_path: Path):
    turns = [{"text": "done"}, {"text": "never"}, {"text": "never"}]
    assert lines(tmp_path, turns=turns, expect={"iterations": 1}) == []
    assert lines(tmp_path, turns=turns, expect={"iterations": 2}) == [
        "A: iterations: expected 2, got 1",
        "A: turns: expected all 3 used, got 1",
    ]
    assert lines(tmp_path, turns=turns, runs=3, expect={"attempts": 2}) == [
        "A: attempts: expected 2, got 1"
    ]
    repeating = [{"text": "done"}, {"repeat": True}]
    assert lines(tmp_path, turns=repeating, expect={"attempts": 2}) == [
        "A: attempts: expected 2, got 1"
    ]


def test_only_what_is_given_is_compared_and_every_difference_gets_its_line(tmp_path: Path):
    assert lines(tmp_path, expect={"attempts": 1}) == []
    expect = {"attempts": 2, "iterations": 3, "final_text": "done"}
    assert [line.split(":")[1] for line in lines(tmp_path, expect=expect)] == [
        " iterations",
        " attempts",
    ]


def test_one_is_not_true(tmp_path: Path):
    turns = [{"text": '{"a": true}'}]
    expected = 'A: output: expected {"a": 1}, got {"a": true}'
    assert lines(tmp_path, turns=turns, expect={"output": {"a": 1}}) == [expected]


def test_a_loop_that_is_refused_unexpectedly_is_a_difference(tmp_path: Path):
    trial = played(tmp_path, terminal_tools=["finish"], expect={"iterations": 1})
    (line,) = trial.record.scores["scenario"].explanation.splitlines()
    assert line.startswith("A: config_error: expected none, got ")
    assert "finish" in line
    assert trial.record.termination_reason is TerminationReason.ERROR
    assert trial.record.error is not None
    assert trial.record.error.startswith("the loop was refused: ")


@pytest.mark.parametrize("config", [{"max_iterations": -1}, {"max_iteration": 1}])
def test_settings_that_no_loop_takes_can_be_what_is_expected(tmp_path: Path, config):
    assert lines(tmp_path, config=config, expect={"config_error": "max_iteration"}) == []
    (line,) = lines(tmp_path, config=config, expect={"config_error": "handler"})
    assert line.startswith('A: config_error: expected one that contains "handler", got "')


def test_a_run_that_was_not_suspended_cannot_be_resumed(tmp_path: Path):
    (line,) = lines(tmp_path, resume={"text": "x"}, expect={"iterations": 2})
    assert line == "A: run: expected a result, got a run that ended completed: nothing to resume"


def test_a_run_that_is_set_to_raise_is_judged_by_its_result(tmp_path: Path):
    config = {"raise_on_failure": True, "max_iterations": 0}
    assert lines(tmp_path, config=config, expect={"termination_reason": "max_iterations"}) == []


def test_a_script_that_is_too_short_is_told_of(tmp_path: Path):
    assert lines(tmp_path, turns=[], expect={"error_contains": "add a turn"}) == []


@pytest.mark.parametrize(
    ("exception", "ending"),
    [("ConnectionError", "model_error"), ("InfrastructureError", "infrastructure_error")],
)
def test_a_scenario_is_judged_whatever_its_ending(tmp_path: Path, exception, ending):
    turns = [{"raises": "gone", "exception": exception}]
    expect = {"termination_reason": ending, "error_contains": "gone"}
    assert lines(tmp_path, turns=turns, expect=expect) == []


def test_callbacks_that_raise_are_collected(tmp_path: Path):
    callbacks = {"on_tool_call": "raises", "on_success": "raises"}
    assert lines(tmp_path, callbacks=callbacks, expect={"callback_errors": 3}) == []


def test_streamed_answers_come_in_pieces(tmp_path: Path):
    expect = {"events": ["model_request", "model_delta", "model_response"], "terminal_events": 1}
    assert lines(tmp_path, stream=True, expect=expect) == []
    expect = {"forbidden_events": ["model_delta"]}
    assert lines(tmp_path, stream=False, expect=expect) == []


def test_a_request_that_leaves_a_call_unanswered_is_found():
    def said(role: Any, *blocks: Any) -> Message:
        return Message(role=role, content=blocks)

    call = ToolCall(id="c1", name="look", arguments="{}")
    result = ToolResult(call_id="c1", name="look", content="seen")
    start = said("user", Text(text="Do it."))
    assert unanswered([start, said("assistant", call), said("user", result)]) is None
    assert unanswered([start, said("assistant", call)]) == "calls ['c1'] without results"
    assert "message 3" in (unanswered([start, said("assistant", call), start]) or "")
    assert "message 1" in (unanswered([said("user", result)]) or "")
