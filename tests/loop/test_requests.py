"""What each model call is sent: tools, choice, options, marks, window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.protocols import Hook
from harness.providers.scripted import turn
from harness.schema.suite import Skill
from harness.values import IterationPlan
from tests.loop.support import call, kinds, make, output, preview, returns, run

DONE = turn("done")
LOOK = turn(calls=[call("l1", "look")])
SEEN = [returns("look", "seen"), returns("work", "worked")]


def test_a_request_holds_what_the_loop_was_made_with() -> None:
    setup = {"temperature": 0.25}
    _, provider = run([DONE], tools=SEEN, system="Be brief.", max_output_tokens=99, setup=setup)
    request = provider.requests[0]
    assert (request.model, request.system, request.temperature) == ("scripted-1", "Be brief.", 0.25)
    assert (request.max_output_tokens, request.tool_choice) == (99, "auto")
    assert [message.text for message in request.messages] == ["Do the task."]


def test_tools_are_offered_before_output_and_submit() -> None:
    good = turn(calls=[call("o", "output", result="r"), call("s", "submit")])
    _, provider = run([good], tools=SEEN, output=output(handler=preview), reflection=True)
    offered = [spec.name for spec in provider.requests[0].offered]
    assert offered == ["look", "work", "output", "submit"]


@pytest.mark.parametrize("choice", ["auto", "required", "work"])
def test_the_choice_of_tools_is_the_settings(choice: str) -> None:
    _, provider = run([DONE], tools=SEEN, tool_choice=choice)
    assert provider.requests[0].tool_choice == choice


@pytest.mark.parametrize(
    ("choice", "left", "sent"),
    [("work", ["look"], "auto"), ("required", ["look"], "required"), ("required", [], "auto")],
)
def test_a_choice_that_is_not_offered_now_is_left_out(
    choice: str, left: list[str], sent: str
) -> None:
    def narrow(plan: IterationPlan) -> IterationPlan:
        return replace(plan, tools=tuple(spec for spec in plan.tools if spec.name in left))

    setup = {"hooks": [Hook(before_iteration=narrow)]}
    _, provider = run([DONE], tools=SEEN, tool_choice=choice, setup=setup)
    assert provider.requests[0].tool_choice == sent


def test_active_skills_narrow_what_is_offered_and_stand_in_the_system_prompt() -> None:
    skills = [
        Skill(name="r", description="Read.", instructions="Read all.", allowed_tools=("look",))
    ]
    setup: dict[str, Any] = {"skills": skills, "active_skills": ["r"]}
    trajectory, provider = run(
        [turn(calls=[call("w", "work")]), DONE], tools=SEEN, system="Be brief.", setup=setup
    )
    assert [spec.name for spec in provider.requests[0].offered] == ["look"]
    assert str(provider.requests[0].system).startswith("Be brief.")
    assert "Read all." in str(trajectory.system)
    assert trajectory.tools_executed == (), "what a skill leaves out cannot be called"


@pytest.mark.parametrize("prompt_cache", [True, False])
def test_cache_marks_are_asked_for_in_every_request(prompt_cache: bool) -> None:
    _, provider = run([LOOK, DONE], tools=SEEN, prompt_cache=prompt_cache)
    assert [request.cache_marks for request in provider.requests] == [prompt_cache] * 2


def test_a_window_sends_less_and_keeps_everything() -> None:
    turns = [turn(calls=[call(f"l{n}", "look")]) for n in range(4)]
    trajectory, provider = run([*turns, DONE], tools=SEEN, window={"max_messages": 3})
    assert [len(request.messages) for request in provider.requests] == [1, 3, 3, 3, 3]
    assert len(trajectory.messages) == 10
    told = [event.data for event in trajectory.events if event.kind == "window_applied"]
    assert told == [{"sent": 3, "of": 5}, {"sent": 3, "of": 7}, {"sent": 3, "of": 9}]


def test_what_fits_the_window_is_no_event() -> None:
    trajectory, _ = run([LOOK, DONE], tools=SEEN, window={"max_messages": 50})
    assert "window_applied" not in kinds(trajectory)


def test_what_recall_finds_stands_in_the_system_prompt() -> None:
    asked: list[tuple[str, int]] = []

    class Memory:
        def search(self, query: str, limit: int) -> list[str]:
            asked.append((query, limit))
            return ["It was the fuse."]

    loop, provider = make([DONE], setup={"recall": Memory()})
    loop.run("Why is it dark?")
    assert asked == [("Why is it dark?", 5)]
    assert "It was the fuse." in str(provider.requests[0].system)


def test_a_memory_that_fails_breaks_no_run() -> None:
    class Broken:
        def search(self, query: str, limit: int) -> list[str]:
            raise OSError("gone")

    trajectory, _ = run([DONE], system="Be brief.", setup={"recall": Broken()})
    assert (trajectory.final_text, trajectory.system) == ("done", "Be brief.")
    assert trajectory.callback_errors == ("recall: OSError: gone",)
