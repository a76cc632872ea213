"""A task of several steps in ATIF and as Harbor has it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from harness.providers.scripted import turn
from harness.report.conversation import SpeechView, conversation
from harness.report.harbor_job import harbor_files
from harness.runner.step_story import joined, judged
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Usage
from harness.schema.results import Verdict
from harness.schema.trajectory import Trajectory
from tests.loop.support import call, returns, run
from tests.report.exports import (
    as_atif,
    as_harbor,
    check_harbor,
    needs_schemas,
    one_trial,
    results,
)
from tests.report.sample_run import SampleRun


def played(instruction: str, seen: str) -> Trajectory:
    ticks = iter(range(1000))
    looks = turn(calls=[call("1", "look")], usage=Usage(input=10, output=5))
    trajectory, _ = run(
        [looks, turn(f"I saw {seen}.", usage=Usage(input=20, output=2))],
        messages=instruction,
        system="Be brief.",
        tools=[returns("look", seen)],
        setup={"clock": lambda: float(next(ticks))},
    )
    return trajectory


def failed(instruction: str) -> Trajectory:
    """A step in which the model says nothing at all."""
    trajectory, _ = run([], messages=instruction, system="Be brief.")
    return trajectory


def sample(*, last: Trajectory) -> SampleRun:
    story = joined(None, played("Find it.", "a cup"), step="find", number=1)
    story = judged(story, "find", Verdict(rewards={"reward": 0.5}), None)
    story = joined(story, last, step="bring it", number=2)
    story = judged(story, "bring it", Verdict(error="the verifier did not end within 5 s"), None)
    made = one_trial(
        termination_reason=story.termination_reason,
        error=story.error,
        usage=story.usage,
        verdict=Verdict(error="step bring it: the verifier did not end within 5 s"),
        cost_usd=None,
        duration_s=1.0,
        finished_at=datetime(2026, 11, 22, 10, 0, tzinfo=UTC),
    )
    (trial,) = made.trials
    return SampleRun(made.run, made.trials, {trial.trial_id: story})


def test_each_step_has_its_own_result():
    (result,) = results(sample(last=played("Bring it.", "a plate"))).values()
    find, bring = result["step_results"]
    assert (find["step_name"], find["verifier_result"]) == ("find", {"rewards": {"reward": 0.5}})
    assert find["exception_info"] is None
    assert bring["verifier_result"] is None
    assert bring["exception_info"]["exception_type"] == "VerifierTimeoutError"
    for step in (find, bring):
        assert step["agent_result"]["n_input_tokens"] == 30
        assert step["agent_result"]["n_output_tokens"] == 7
    assert result["agent_result"]["n_input_tokens"] == 60
    assert find["agent_execution"]["finished_at"] <= bring["agent_execution"]["started_at"]
    assert bring["agent_execution"]["finished_at"] <= result["finished_at"]


def test_each_step_has_its_own_folder_with_its_own_conversation():
    files = as_harbor(sample(last=played("Bring it.", "a plate")))
    steps = {path.split("/steps/")[1]: text for path, text in files.items() if "/steps/" in path}
    assert steps["find/verifier/reward.txt"] == "0.5\n"
    assert steps["find/agent/answer.txt"] == "I saw a cup.\n"
    (bring,) = {path.split("/")[0] for path in steps} - {"find"}
    for folder, said in (("find", "Find it."), (bring, "Bring it.")):
        story = json.loads(steps[f"{folder}/agent/trajectory.json"])
        assert [step["message"] for step in story["steps"][:2]] == ["Be brief.", said]
        assert [step["source"] for step in story["steps"][2:]] == ["agent", "agent"]
        assert story["final_metrics"]["total_prompt_tokens"] == 30
        assert story["final_metrics"]["extra"]["iterations"] == 2
        ids = {
            made["tool_call_id"] for step in story["steps"] for made in step.get("tool_calls", ())
        }
        assert len(ids) == 1


def test_a_step_in_which_the_model_said_nothing_is_told_by_its_own_instruction():
    made = sample(last=failed("Bring it."))
    (result,) = results(made).values()
    assert result["exception_info"]["exception_type"] == "ApiError"
    find, bring = result["step_results"]
    assert find["exception_info"] is None
    assert find["agent_result"]["metadata"]["termination_reason"] == TerminationReason.COMPLETED
    assert bring["exception_info"]["exception_type"] == "ApiError"
    stories = [json.loads(t) for p, t in as_harbor(made).items() if p.endswith("trajectory.json")]
    said = [[step["message"] for step in story["steps"]] for story in stories]
    assert said[1] == ["Be brief.", "Find it.", "", "I saw a cup."]
    assert said[2] == ["Be brief.", "Bring it."]


def test_the_whole_story_says_where_a_step_begins():
    (data,) = as_atif(sample(last=played("Bring it.", "a plate"))).values()
    titles = [
        note["title"] for step in data["steps"] for note in step.get("extra", {}).get("before", ())
    ]
    assert titles == ["Step 1: find", "Verifier of step find", "Step 2: bring it"]
    assert [note["title"] for note in data["extra"]["after"]] == ["Verifier of step bring it"]


def test_what_each_step_asks_is_an_instruction():
    story = joined(None, played("Find it.", "a cup"), step="find", number=1)
    story = joined(story, played("Bring it.", "a plate"), step="bring it", number=2)
    said = [part for turn in conversation(story, None) for part in turn.parts]
    texts = [part for part in said if isinstance(part, SpeechView)]
    asked = [part.content.text for part in texts if part.kind == "instruction"]
    assert asked == ["Find it.", "Bring it."]
    assert "user" not in [part.kind for part in texts]


def test_a_task_with_a_single_step_has_no_steps():
    (result,) = results(one_trial()).values()
    assert result["step_results"] is None


@needs_schemas
def test_steps_are_as_the_schemas_say():
    made = sample(last=played("Bring it.", "a plate"))
    held = check_harbor(harbor_files(made.run, made.trials, made.load))
    assert held.count("atif") == 3
