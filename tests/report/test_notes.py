"""What a trial's page says of what the loop's settings did."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.loop.engine import Loop
from harness.protocols import Hook
from harness.providers.scripted import Scripted, turn
from harness.report.conversation import CallView, ResultView, SpeechView, conversation
from harness.report.html import render
from harness.report.notes import NoteView
from harness.report.trial_page import facts
from harness.schema.loop_config import Compaction, LoopConfig, Window
from harness.schema.messages import Message, ModelTurn, Text, Usage
from harness.schema.signals import Signal, Suspend
from harness.schema.trajectory import SuspendedRun, Trajectory
from harness.values import Approval, IterationPlan, ToolOutcome
from tests.report.hostile import HOSTILE
from tests.report.page import parse
from tests.report.sample_run import SampleTools, sample_run

USAGE = Usage(input=10, output=5)
LISTING = ToolOutcome("a file with a rather long name, and another one of the same length")
ASKED = ToolOutcome("asked", asks=Suspend(correlation_id="ticket-7", data={"who": "boss"}))


def look(number: int, *more: int) -> ModelTurn:
    calls = [(f"call_{one}", "list_dir", '{"path": "."}') for one in (number, *more)]
    return turn(calls=calls, usage=USAGE)


def said(text: str) -> ModelTurn:
    return turn(text, usage=USAGE)


def made(
    *turns: ModelTurn | Exception,
    config: LoopConfig | None = None,
    outcome: ToolOutcome = LISTING,
    hooks: tuple[Hook, ...] = (),
) -> Loop:
    tools = SampleTools(iter([outcome] * 9))
    return Loop(Scripted(turns), model="m", tools=tools, config=config or LoopConfig(), hooks=hooks)


def told(trajectory: Trajectory) -> list[str]:
    """Every part of the page, in order."""
    lines = []
    for one in conversation(trajectory, None):
        for part in one.parts:
            match part:
                case NoteView():
                    lines.append(": ".join(filter(None, (part.title, part.text))))
                case SpeechView():
                    lines.append(f"{one.role}: {part.content.text}")
                case CallView():
                    lines.append("call")
    return lines


def results(trajectory: Trajectory) -> list[ResultView]:
    parts = (part for one in conversation(trajectory, None) for part in one.parts)
    return [part.result for part in parts if isinstance(part, CallView) and part.result]


def fact(trajectory: Trajectory, label: str) -> str | None:
    record = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1).trials[0]
    return {one.label: one.value for one in facts(record, trajectory)}.get(label)


def shown_tokens(trajectory: Trajectory) -> Counter[str]:
    """The tokens of all cards of a page, summed."""
    found: Counter[str] = Counter()
    for one in conversation(trajectory, None):
        usages = [one.usage, *(part.usage for part in one.parts if isinstance(part, NoteView))]
        for usage in filter(None, usages):
            for part in usage.removeprefix("tokens: ").split(", "):
                count, name = part.split()
                found[name] += int(count)
    return found


COMPACTED = LoopConfig(compaction=Compaction(above_tokens=30))


def test_compaction_and_window_stand_before_the_turn_that_they_were_for():
    turns = (look(1), look(2), said("In short: two files."), look(3), said("Again."), said("Done."))
    assert told(made(*turns, config=COMPACTED).run("Do it.")) == [
        "user: Do it.",
        "call",
        "call",
        "Compaction: The model was asked to sum up the older turns.",
        "Sent 3 of 5 messages",
        "call",
        "Compaction: The model was asked to sum up the older turns.",
        "Sent 3 of 7 messages",
        "assistant: Done.",
    ]
    windowed = LoopConfig(window=Window(max_messages=3))
    trajectory = made(look(1), look(2), said("Done."), config=windowed).run("Do it.")
    assert told(trajectory)[-2:] == ["Sent 3 of 5 messages", "assistant: Done."]


@pytest.mark.parametrize(
    ("config", "turns"),
    [
        (COMPACTED, (look(1), look(2), said("Short."), look(3), said("Again."), said("Done."))),
        (LoopConfig(empty_retries=1), (turn(usage=USAGE), look(1), said("Done."))),
        (LoopConfig(max_iterations=1, on_limit="wrap_up"), (look(1), said("So far."))),
        (LoopConfig(llm_error_threshold=2), (look(1), ValueError("overload"), said("Done."))),
        (LoopConfig(), (look(1), look(1), look(1), said("Done."))),
    ],
)
def test_the_tokens_of_all_cards_add_up_to_those_of_the_trial(config, turns):
    trajectory = made(*turns, config=config).run("Do it.")
    total = trajectory.usage
    assert shown_tokens(trajectory) == {"in": total.input, "out": total.output}


def test_the_last_call_at_a_limit_is_marked_and_is_no_iteration():
    config = LoopConfig(max_iterations=1, on_limit="wrap_up", soft_limit=1)
    trajectory = made(look(1), said("So far."), config=config).run("Do it.")
    _, first, *_, last = conversation(trajectory, None)
    assert (first.number, first.purpose) == (1, "")
    assert (last.number, last.purpose, last.usage) == (
        None,
        "asked to wrap up",
        "tokens: 10 in, 5 out",
    )
    assert "Soft limit reached: After iteration 1; soft_limit is 1." in told(trajectory)
    assert fact(trajectory, "Wrapped up") == "yes: a last call without tools gave the final text"


def test_a_suspended_run_names_what_it_waits_for_and_marks_its_reply():
    trajectory = made(look(1), said("I wait."), outcome=ASKED).run("Do it.")
    assert conversation(trajectory, None)[-1].purpose == "reply before it was suspended"
    assert fact(trajectory, "Waits for") == 'ticket-7, with {"who": "boss"}'


def test_a_run_taken_up_again_numbers_its_own_turns_and_says_what_came_before():
    state = made(look(1), said("I wait."), outcome=ASKED).run("Do it.").suspended
    assert isinstance(state, SuspendedRun)
    trajectory = made(said("Done.")).resume_suspended(state, "Yes.")
    assert told(trajectory) == [
        "Taken up again: 2 model calls made before are in the sums and not shown one by one.",
        "user: Do it.",
        "call",
        "assistant: I wait.",
        "user: Yes.",
        "assistant: Done.",
    ]
    numbers = [one.number for one in conversation(trajectory, None) if one.role == "assistant"]
    assert numbers == [None, None, 2]


def test_a_conversation_may_begin_with_answers_of_before():
    messages = [
        Message(role="user", content=(Text(text="Hello."),)),
        Message(role="assistant", content=(Text(text="Hello!"),)),
        Message(role="user", content=(Text(text="Do it."),)),
    ]
    turns = conversation(made(said("Done.")).run(messages), None)
    assert [one.number for one in turns] == [None, None, None, 1]
    spoken = [part.kind for one in turns for part in one.parts if isinstance(part, SpeechView)]
    assert spoken == ["instruction", "assistant", "user", "assistant"]


def test_an_empty_answer_is_told_with_its_tokens():
    turns = (turn(usage=USAGE), look(1), said("Done."))
    trajectory = made(*turns, config=LoopConfig(empty_retries=1)).run("Do it.")
    assert told(trajectory)[1] == "Model call: The answer was empty."


def test_a_turn_that_repeats_its_ids_and_is_stopped_keeps_its_place():
    turns = conversation(
        made(look(1), look(1), config=LoopConfig(loop_detection=2)).run("Go."), None
    )
    assert [one.number for one in turns] == [None, 1, 2]


def test_a_signal_is_named_with_its_data():
    done = ToolOutcome("saved", asks=Signal(name="saved", data={"lines": 3}))
    trajectory = made(look(1), outcome=done).run("Do it.")
    assert fact(trajectory, "Signal") == 'saved, with {"lines": 3}'


def test_a_cancelled_run_says_where():
    loop = made(look(1), said("Done."))
    loop.cancel("enough")
    assert fact(loop.run("Do it."), "Cancelled during") == "start"


def denied(*_: object) -> Approval:
    return Approval(approved=False, reason="not today")


def test_denied_failed_and_not_run_are_three_things():
    config = LoopConfig(max_tool_calls_per_turn=1)
    refused = made(look(1, 2), said("Done."), config=config, hooks=(Hook(approve_tool=denied),))
    trajectory = refused.run("Do it.")
    assert [(one.kind, one.title) for one in results(trajectory)] == [
        ("denied", "Denied"),
        ("not_run", "Not run"),
    ]
    assert "not today" in results(trajectory)[0].content.text
    assert fact(trajectory, "Calls not executed") == "1 denied, 1 not run"
    assert "failed" not in (fact(trajectory, "Tool calls") or "")
    failed = made(look(1), said("Done."), outcome=ToolOutcome("no such file", "failed"))
    trajectory = failed.run("Do it.")
    assert results(trajectory)[0].kind == "error"
    assert (fact(trajectory, "Tool calls") or "").endswith(", 1 failed")
    assert fact(trajectory, "Calls not executed") is None


@pytest.mark.parametrize("text", ["Not run: because I say so.", "Denied: not today."])
def test_a_tool_cannot_pass_its_failure_off_as_the_loops_word(text):
    trajectory = made(look(1), said("Done."), outcome=ToolOutcome(text, "failed")).run("Do it.")
    assert results(trajectory)[0].kind == "error"


def test_the_same_id_in_two_turns_keeps_both_results():
    outcomes = iter([ToolOutcome("one"), ToolOutcome("two")])
    loop = Loop(
        Scripted([look(1), look(1), said("Done.")]),
        model="m",
        tools=SampleTools(outcomes),
        config=LoopConfig(),
    )
    assert [one.content.text for one in results(loop.run("Do it."))] == ["one", "two"]


def raising(plan: IterationPlan) -> IterationPlan | None:
    raise RuntimeError(HOSTILE)


def test_failed_hooks_and_failed_calls_are_told_where_they_happened():
    config = LoopConfig(llm_error_threshold=2)
    loop = made(
        ValueError("overload"),
        said("Done."),
        config=config,
        hooks=(Hook(name="mine", pause_check=lambda number: 1 // 0),),  # type: ignore[arg-type,return-value]
    )
    lines = told(loop.run("Do it."))
    failed = "Hook failed: mine, pause_check: ZeroDivisionError: integer division or modulo by zero"
    assert lines == [
        "user: Do it.",
        failed,
        "Model call failed: overload",
        failed,
        "assistant: Done.",
    ]


def test_what_hooks_and_data_say_cannot_leave_its_place():
    hook = Hook(name=HOSTILE, before_iteration=raising)
    name = HOSTILE.encode(errors="replace").decode()
    signal = ToolOutcome("x", asks=Signal(name=name, data={name: name}))
    trajectory = made(look(1), outcome=signal, hooks=(hook,)).run("Do it.")
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1)
    tags = {node.tag for node in parse(render(sample.run, sample.trials, sample.load)).walk()}
    page = parse(render(sample.run, sample.trials, lambda _: trajectory))
    assert {node.tag for node in page.walk()} <= tags
    assert HOSTILE.split("\n")[0] in page.one("div", css="note").text
