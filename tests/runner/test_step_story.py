"""Several steps told as one story: nothing of them is lost, and nothing of them is mixed up."""

from __future__ import annotations

from harness.loop.engine import Loop
from harness.providers.scripted import Scripted, turn
from harness.report.conversation import CallView, SpeechView, conversation
from harness.report.notes import NoteView
from harness.runner.step_story import joined, judged
from harness.schema.messages import Usage
from harness.schema.results import Verdict
from harness.schema.trajectory import Trajectory, UsageTotal
from harness.tools.registry import Registry
from tests.loop.support import call, returns


def played(instruction: str, seen: str, *, usage: Usage | None) -> Trajectory:
    """A step in which the model looks once, and then says what it saw."""
    looks = turn(calls=[call("same-id", "look")], usage=usage, model="m-1")
    answers = Scripted([looks, turn(f"I saw {seen}.", usage=Usage(input=1, output=1))])
    ticks = iter(range(1000))
    tools = Registry([returns("look", seen)])
    loop = Loop(answers, model="m", tools=tools, clock=lambda: float(next(ticks)))
    return loop.run(instruction, system="S", run_id="t/v/0")


def test_the_story_of_two_steps_holds_both_in_order():
    first = played("Find it.", "a cup", usage=Usage(input=10, output=5))
    second = played("Bring it.", "a plate", usage=None)
    story = joined(None, first, step="find", number=1)
    story = judged(story, "find", Verdict(rewards={"reward": 0.5}), None)
    story = joined(story, second, step="bring", number=2)
    story = judged(story, "bring", None, "reward 0 is below 1")

    assert [message.text for message in story.messages if message.text] == [
        "Find it.",
        "I saw a cup.",
        "Bring it.",
        "I saw a plate.",
    ]
    assert (story.system, story.final_text) == ("S", "I saw a plate.")
    assert (story.iterations, story.model_calls, story.tool_calls_made) == (4, 4, 2)
    assert story.tools_used == ("look",)
    assert story.usage == UsageTotal(input=12, output=7, missing_calls=1)
    assert story.usage_by_tag["main"] == story.usage
    assert story.models == ("m-1",)
    assert story.duration_s == first.duration_s + second.duration_s
    iterations = [event.iteration for event in story.events if event.kind == "model_request"]
    assert iterations == [1, 2, 3, 4]
    times = [event.at_s for event in story.events]
    assert times == sorted(times)


def test_the_page_shows_the_steps_and_each_call_with_its_own_result():
    story = joined(None, played("Find it.", "a cup", usage=None), step="find", number=1)
    story = judged(story, "find", Verdict(rewards={"reward": 1, "style": 0.5}), None)
    story = joined(story, played("Bring it.", "a plate", usage=None), step="bring", number=2)
    story = judged(story, "bring", Verdict(error="no reward"), "no reward")
    told = []
    for one in conversation(story, None):
        for part in one.parts:
            match part:
                case NoteView():
                    told.append(f"{part.title} {part.text}".strip())
                case SpeechView():
                    told.append(part.content.text)
                case CallView():
                    assert part.result is not None
                    told.append(f"{part.name}: {part.result.content.text}")
    assert told == [
        "Step 1: find",
        "Find it.",
        "look: a cup",
        "I saw a cup.",
        "Verifier of step find reward 1, style 0.5",
        "Step 2: bring",
        "Bring it.",
        "look: a plate",
        "I saw a plate.",
        "Verifier of step bring no reward\nThe next steps were not begun: no reward.",
    ]
