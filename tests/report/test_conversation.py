"""What a trial's page says of its conversation."""

from __future__ import annotations

import json

import pytest

from harness.loop.engine import Loop
from harness.providers.scripted import Scripted, turn
from harness.report.conversation import CallView, SpeechView, conversation, shown
from harness.schema.loop_config import Confirm, LoopConfig
from harness.schema.messages import ModelTurn, StopReason, Usage
from harness.schema.suite import Variant
from harness.schema.trajectory import Trajectory
from harness.values import ToolOutcome
from tests.report.sample_run import VARIANTS, SampleTools, output_of

BASELINE: Variant = VARIANTS[0]
LISTING = ToolOutcome("a.txt")
USAGE = Usage(input=1200, output=34)


def look(number: int) -> ModelTurn:
    return turn(calls=[(f"call_{number}", "list_dir", '{"path": "."}')], usage=USAGE)


def run(
    *turns: ModelTurn,
    config: LoopConfig | None = None,
    with_output: bool = False,
    outcome: ToolOutcome = LISTING,
) -> Trajectory:
    loop = Loop(
        Scripted(turns),
        model="m",
        tools=SampleTools(iter([outcome] * 9)),
        output=output_of(BASELINE) if with_output else None,
        config=config or LoopConfig(),
    )
    return loop.run("Do it.")


def spoken(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [
        (part.kind, part.content.text)
        for said in conversation(trajectory, None)
        for part in said.parts
        if isinstance(part, SpeechView)
    ]


def calls(trajectory: Trajectory) -> list[CallView]:
    return [
        part
        for said in conversation(trajectory, None)
        for part in said.parts
        if isinstance(part, CallView)
    ]


def test_a_result_stands_under_its_call_and_not_again_after_it():
    turns = conversation(run(look(1), turn("Done.", usage=USAGE)), None)
    assert [said.role for said in turns] == ["user", "assistant", "assistant"]
    (call,) = calls(run(look(1), turn("Done.")))
    assert call.result is not None
    assert (call.name, call.result.kind, call.result.content.text) == (
        "list_dir",
        "result",
        "a.txt",
    )


def test_turns_carry_their_iteration_and_tokens():
    turns = conversation(run(look(1), turn("Done.", usage=USAGE)), None)
    assert [said.number for said in turns] == [None, 1, 2]
    assert [said.usage for said in turns] == ["", *["tokens: 1,200 in, 34 out"] * 2]


def test_a_call_that_reported_no_usage_says_so():
    turns = conversation(run(turn("Done.")), None)
    assert turns[1].usage == "usage not reported"


def test_a_text_turn_is_numbered_unless_an_empty_answer_beside_it_left_no_message():
    config = LoopConfig(text_only="nudge", nudge_max=3)
    trajectory = run(turn(), look(1), turn("One."), look(2), turn(), turn("Two."), config=config)
    numbers = {
        said.parts[0].content.text if isinstance(said.parts[0], SpeechView) else "call": said.number
        for said in conversation(trajectory, None)
        if said.role == "assistant"
    }
    assert numbers == {"call": 4, "One.": 3, "Two.": None}


def test_questions_reminders_and_other_words_of_the_loop_are_told_apart():
    confirm = LoopConfig(confirm=Confirm(enabled=True, prompt="Sure?"))
    assert spoken(
        run(turn("Done."), turn("CONTINUE"), turn("Ok."), turn("COMPLETED"), config=confirm)
    ) == [
        ("instruction", "Do it."),
        ("assistant", "Done."),
        ("question", "Sure?"),
        ("assistant", "CONTINUE"),
        ("loop", "Continue."),
        ("assistant", "Ok."),
        ("question", "Sure?"),
        ("assistant", "COMPLETED"),
    ]
    nudged = spoken(run(turn("Hm."), turn("Hm."), with_output=True))
    assert [kind for kind, _ in nudged] == ["instruction", "assistant", "reminder", "assistant"]


def test_a_failed_validation_is_not_shown_as_a_failed_tool():
    bad = turn(calls=[("1", "output", '{"answer": "x", "total": -1}')])
    good = turn(calls=[("2", "output", '{"answer": "x", "total": 1}')])
    first, second = calls(run(bad, good, with_output=True))
    assert first.result is not None
    assert (first.result.kind, first.result.title) == ("rejection", "Rejected")
    assert "cannot be negative" in first.result.content.text
    assert second.result is not None
    assert second.result.kind == "result"


def test_a_failed_tool_is_marked():
    (call,) = calls(run(look(1), turn("Done."), outcome=ToolOutcome("no such file", "failed")))
    assert call.result is not None
    assert (call.result.kind, call.result.title) == ("error", "Error")


def test_arguments_read_as_the_tool_gets_them():
    raw = json.dumps({"path": "a.py", "content": "one\ntwo\n", "mode": 7, "flag": True, "n": "7"})
    (call,) = calls(run(turn(calls=[("1", "write_file", raw)]), turn("Done.")))
    assert [(entry.name, entry.value.text) for entry in call.arguments] == [
        ("path", "a.py"),
        ("content", "one\ntwo\n"),
        ("mode", "7"),
        ("flag", "true"),
        ("n", '"7"'),
    ]


@pytest.mark.parametrize("raw", ['{"path": "a', "[1]", "null", "[" * 3000])
def test_arguments_that_are_no_object_are_shown_as_written(raw):
    (call,) = calls(run(turn(calls=[("1", "shell", raw)]), turn("Done.")))
    assert call.raw is not None
    assert call.raw.text == raw


def test_an_empty_string_can_be_seen():
    assert shown("") == '""'


def test_where_a_conversation_leaves_the_baselines_is_marked_once():
    trajectory = run(look(1), look(2), turn("Done."))
    turns = conversation(trajectory, 3)
    assert [said.is_parting for said in turns] == [False, False, True, False]


def test_a_long_result_gets_its_own_box():
    (call,) = calls(run(look(1), turn("Done."), outcome=ToolOutcome("line\n" * 100)))
    assert call.result is not None
    assert call.result.content.is_long


def test_a_turn_cut_at_its_limit_keeps_its_place():
    cut = turn(
        "I will", calls=[("1", "list_dir", '{"path"')], stop=StopReason.MAX_TOKENS, usage=USAGE
    )
    turns = conversation(run(cut, turn("Done.", usage=USAGE)), None)
    assert [(said.role, said.number) for said in turns] == [
        ("user", None),
        ("assistant", 1),
        ("user", None),
        ("assistant", 2),
    ]
