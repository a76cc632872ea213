"""What a trial's trajectory is in ATIF."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import atif
import pytest

from harness.cassette.convert.atif import read_atif
from harness.errors import RateLimitedError
from harness.providers.scripted import turn
from harness.schema.loop_config import Confirm
from harness.schema.messages import Message, ModelTurn, Text, Usage, VendorBlock
from harness.schema.trajectory import Trajectory
from tests.loop.support import call, fails, long_enough, output, returns, run
from tests.report.exports import as_atif, check_atif, every_ending, needs_schemas, one_trial
from tests.report.hostile import HOSTILE, hostile_run
from tests.report.sample_run import BROKEN, MISSED, MIXED, UNJUDGED, SampleRun, sample_run

USAGE = Usage(input=100, output=10, cache_read=40, cache_write=5)


def exported(trajectory: Trajectory, **changes: Any) -> Any:
    """A trajectory in ATIF, held against the package of that name."""
    counts = {key: getattr(trajectory, key) for key in ("usage", "attempts", "iterations")}
    sample = one_trial(cost_usd=None, **counts, **changes)
    (trial,) = sample.trials
    (data,) = as_atif(SampleRun(sample.run, (trial,), {trial.trial_id: trajectory})).values()
    atif.Trajectory.model_validate(data)
    return data


def eventful() -> Trajectory:
    """Two attempts, a question, calls that fail, are denied or cannot be read, failing models."""
    trajectory, _ = run(
        [
            RateLimitedError("slow down"),
            turn("I look.", calls=[call("1", "look", at="a"), ("2", "look", "{broken")]),
            turn(calls=[call("3", "breaks"), call("4", "look")], usage=USAGE),
            turn(calls=[call("5", "output", result="short")], usage=USAGE),
            turn("I am done.", usage=USAGE),
            turn(calls=[call("6", "output", result="long enough")], usage=USAGE),
        ],
        tools=[returns("look", "here"), fails("breaks")],
        output=output(long_enough),
        system="Be brief.",
        llm_error_threshold=2,
        max_tool_calls_per_turn=1,
    )
    assert trajectory.termination_reason == "completed"
    return trajectory


def test_everything_that_happened_is_there_in_its_order():
    data = exported(eventful())
    assert [step["step_id"] for step in data["steps"]] == list(range(1, len(data["steps"]) + 1))
    sources = [step["source"] for step in data["steps"]]
    assert sources == ["system", "user", "agent", "agent", "agent", "agent", "user", "agent"]
    first = data["steps"][2]
    assert first["extra"]["before"] == [
        {"title": "Model call failed", "text": "slow down", "iteration": 1}
    ]
    assert first["message"] == "I look."
    assert first["tool_calls"] == [
        {"tool_call_id": "1", "function_name": "look", "arguments": {"at": "a"}},
        {
            "tool_call_id": "2",
            "function_name": "look",
            "arguments": {},
            "extra": {"written": "{broken"},
        },
    ]
    answered = first["observation"]["results"]
    assert [result["source_call_id"] for result in answered] == ["1", "2"]
    assert answered[0] == {"source_call_id": "1", "content": "here"}
    assert answered[1]["extra"]["is_error"] is True
    failed, beyond = data["steps"][3]["observation"]["results"]
    assert failed["content"] == "bad input"
    assert failed["extra"] == {"is_error": True, "kind": "error"}
    assert beyond["extra"] == {"is_error": True, "kind": "not_run"}
    (rejected,) = data["steps"][4]["observation"]["results"]
    assert "result is too short" in rejected["content"]
    assert rejected["extra"] == {"is_error": True, "kind": "rejection"}
    assert data["steps"][6]["extra"] == {"kind": "reminder"}
    assert data["extra"]["validation_failures"] == ["result is too short"]
    assert data["extra"]["output"] == {"result": "long enough"}
    assert data["final_metrics"]["extra"]["attempts"] == 2
    assert data["final_metrics"]["extra"]["failed_calls"] == 1


def test_a_denied_call_and_a_question_are_told_as_what_they_are():
    trajectory, _ = run(
        [turn(calls=[call("1", "look")]), turn("Done."), turn("COMPLETED: Done.")],
        tools=[returns("look", "here")],
        governance={"scopes": ("tools:other",)},
        confirm=Confirm(enabled=True),
    )
    data = exported(trajectory)
    (result,) = data["steps"][1]["observation"]["results"]
    assert result["extra"] == {"is_error": True, "kind": "denied"}
    assert [step.get("extra", {}).get("kind") for step in data["steps"]] == [
        "instruction",
        None,
        None,
        "question",
        None,
    ]


def test_tokens_count_what_a_cache_held_as_part_of_the_prompt():
    trajectory, _ = run([turn("Yes.", usage=USAGE)])
    data = exported(trajectory)
    assert data["steps"][1]["metrics"] == {
        "prompt_tokens": 145,
        "completion_tokens": 10,
        "cached_tokens": 40,
        "extra": {"cache_write_tokens": 5},
    }
    totals = data["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_cached_tokens"]) == (145, 40)


def test_unknown_tokens_are_left_out_and_never_zero():
    data = exported(run([turn("Yes.")])[0])
    assert "metrics" not in data["steps"][1]
    assert not {"total_prompt_tokens", "total_cost_usd"} & data["final_metrics"].keys()
    assert data["final_metrics"]["extra"]["calls_without_usage"] == 1
    partly = exported(run([turn("Yes.", usage=Usage(output=3))])[0])
    assert partly["steps"][1]["metrics"] == {"completion_tokens": 3}


def test_the_cost_of_the_steps_adds_up_to_the_trials():
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1)
    ((_, data),) = as_atif(sample).items()
    costs = [step["metrics"]["cost_usd"] for step in data["steps"] if "metrics" in step]
    assert sum(costs) == pytest.approx(sample.trials[0].cost_usd)
    other = sample.trials[0].model_copy(update={"cost_usd": 5.0})
    (data,) = as_atif(SampleRun(sample.run, (other,), sample.trajectories)).values()
    assert data["final_metrics"]["total_cost_usd"] == 5.0
    assert not [step for step in data["steps"] if "cost_usd" in step.get("metrics", {})]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"reasoning_content": "Hm."},
        {"reasoning": "Hm."},
        {"thinking": "Hm."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"thought": True, "text": "Hm."},
    ],
)
def test_reasoning_of_any_vendor_is_told_as_such_and_kept_as_it_came(block):
    vendor = VendorBlock(dialect="some", data=block)
    thought = ModelTurn(content=(vendor, Text(text="Yes.")), stop=turn("x").stop)
    step = exported(run([thought])[0])["steps"][1]
    assert (step["reasoning_content"], step["message"]) == ("Hm.", "Yes.")
    assert step["extra"]["blocks"] == [{"dialect": "some", "data": block}]


def test_other_blocks_of_a_vendor_are_no_reasoning():
    vendor = VendorBlock(dialect="text-json", data={"text": '{"name": "look"}', "type": 3})
    step = exported(run([ModelTurn(content=(vendor,), stop=turn("x").stop), turn("Yes.")])[0])
    assert "reasoning_content" not in step["steps"][1]


@pytest.mark.parametrize("written", ['{"a": 1e999}', '{"a": 1, "a": 2}', "[1]", "[" * 9999, "x"])
def test_arguments_that_no_object_can_hold_are_kept_as_written(written):
    trajectory, _ = run([turn(calls=[("1", "look", written)]), turn("Done.")])
    (made,) = exported(trajectory)["steps"][1]["tool_calls"]
    assert (made["arguments"], made["extra"]) == ({}, {"written": written})


def test_times_are_counted_back_from_when_the_trial_ended():
    trajectory = run([turn("Yes.")])[0].model_copy(update={"duration_s": 20.0})
    events = [event.model_copy(update={"at_s": 4.0}) for event in trajectory.events]
    trajectory = trajectory.model_copy(update={"events": tuple(events)})
    ended = datetime(2026, 11, 22, 10, 0, 30, tzinfo=UTC)
    data = exported(trajectory, finished_at=ended, duration_s=0.5)
    assert [step["timestamp"] for step in data["steps"]] == ["2026-11-22T10:00:14Z"] * 2
    longer = exported(trajectory, finished_at=ended, duration_s=30.0)
    assert longer["steps"][0]["timestamp"] == "2026-11-22T10:00:04Z"
    assert "timestamp" not in exported(trajectory)["steps"][0]


def test_calls_that_left_no_step_are_spoken_of():
    trajectory, _ = run([turn(""), turn("Yes.", usage=USAGE)], empty_retries=1)
    data = exported(trajectory)
    assert data["notes"] == (
        "2 answered model calls gave no step, or which step cannot be told; final_metrics count"
        " them."
    )
    assert data["final_metrics"]["total_prompt_tokens"] == 145
    assert "notes" not in exported(run([turn("Yes.")])[0])


def messages_of(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The conversation in OpenAI's chat format, without whitespace of arguments."""
    found = [] if trajectory.system is None else [{"role": "system", "content": trajectory.system}]
    return found + [one for message in trajectory.messages for one in _chat(message)]


def _chat(message: Message) -> list[dict[str, Any]]:
    if message.role == "assistant":
        made = [(one.id, one.name, json.loads(one.arguments)) for one in message.tool_calls]
        return [{"role": "assistant", "content": message.text} | ({"calls": made} if made else {})]
    found: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
        for result in message.tool_results
    ]
    texts = [{"type": "text", "text": b.text} for b in message.content if isinstance(b, Text)]
    if texts:
        content = texts if len(texts) > 1 else texts[0]["text"]
        found.append({"role": "user", "content": content})
    return found


def _plain(message: Any) -> dict[str, Any]:
    return dict(message)


def imported(data: Any) -> list[dict[str, Any]]:
    transcript, _, left_out = read_atif(data)
    assert left_out == []
    found = []
    for message in map(_plain, transcript.messages):
        calls = message.pop("tool_calls", None)
        if isinstance(calls, list):
            message["calls"] = [
                (one["id"], one["function"]["name"], json.loads(one["function"]["arguments"]))
                for one in calls
            ]
        found.append(message)
    return found


def test_what_is_exported_is_imported_as_the_same_conversation():
    sample = sample_run(tasks=("clean-names", "contact-card", "meeting-slot"), repeats=2)
    for trial, data in zip(sample.trials, as_atif(sample).values(), strict=True):
        trajectory = sample.trajectories[trial.trial_id]
        assert imported(data) == messages_of(trajectory), trial.trial_id


def test_several_texts_of_one_turn_stay_apart():
    parts = (Text(text="Look at this."), Text(text="And at that."))
    trajectory, _ = run([turn("Yes.")], messages=[Message(role="user", content=parts)])
    data = exported(trajectory)
    assert [part["text"] for part in data["steps"][0]["message"]] == [p.text for p in parts]
    assert imported(data) == messages_of(trajectory)


def test_misses_broken_and_unjudged_trials_are_exported_like_others():
    tasks = sorted({MISSED[0], BROKEN[0], UNJUDGED[0], MIXED[0]})
    sample = sample_run(tasks=tasks)
    found = as_atif(sample)
    assert len(found) == len(sample.trials)
    for data in found.values():
        atif.Trajectory.model_validate(data)
    task, variant, repeat = MISSED
    missed = found[f"{task}__{variant}__{repeat}.json"]["extra"]
    assert missed["termination_reason"] == "replay_miss"
    assert missed["error"].startswith("no recorded answer to model call 3")
    assert "outcome" in missed
    assert missed["outcome"] is None


def test_hostile_text_survives_word_for_word_and_leads_to_no_other_file():
    found = as_atif(hostile_run())
    assert len(found) == 4
    for path, data in found.items():
        atif.Trajectory.model_validate(data)
        assert Path(path).name == path
        assert path.isascii()
        assert " " not in path
        kept = HOSTILE.replace("\ud800", "?")
        system, instruction, agent, after = data["steps"]
        assert {system["message"], instruction["message"], agent["message"]} == {kept}
        assert after["message"] == kept
        named = [result["content"] for result in agent["observation"]["results"]]
        assert named == [kept, kept]
        (stranger,) = after["observation"]["results"]
        assert stranger["content"] == kept
        assert stranger["extra"]["call_id"] == "never called"
        broken = agent["tool_calls"][1]
        assert (broken["arguments"], broken["extra"]) == ({}, {"written": kept})


def test_a_trial_in_which_nothing_was_said_has_no_file():
    sample = every_ending()
    empty = Trajectory(termination_reason=sample.trials[0].termination_reason)
    trajectories = sample.trajectories | {sample.trials[0].trial_id: empty}
    found = as_atif(SampleRun(sample.run, sample.trials, trajectories))
    assert len(found) == len(sample.trials) - 2  # this one, and the one that was skipped


@needs_schemas
def test_every_ending_is_as_the_schema_says():
    found = {**as_atif(every_ending()), **as_atif(hostile_run())}
    for data in (*found.values(), exported(eventful())):
        check_atif(data)
