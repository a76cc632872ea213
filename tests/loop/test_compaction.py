"""Older turns give way to a summary, in what is sent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.errors import ModelCallError, OutOfTimeError
from harness.loop.compaction import SYSTEM, Compactor
from harness.loop.window import SlidingWindow, estimate_tokens
from harness.providers.scripted import turn
from harness.schema.loop_config import Compaction, TerminationReason, Window
from harness.schema.messages import Message, VendorBlock
from harness.values import ModelRequest
from tests.loop.support import call, returns, run
from tests.loop.test_window import calls, conversations, is_legal, pairs, results, says, user


def compactor(above_tokens: int) -> Compactor:
    return Compactor(Compaction(above_tokens=above_tokens))


def ask(compactor: Compactor, messages: Sequence[Message]) -> ModelRequest | None:
    return compactor.request(messages, model="m", max_output_tokens=99, temperature=0.5)


def asked_text(compactor: Compactor, messages: Sequence[Message]) -> str:
    request = ask(compactor, messages)
    assert request is not None
    return request.messages[0].text


def size(messages: Sequence[Message]) -> int:
    return sum(map(estimate_tokens, messages))


def long_pairs(first: int, count: int) -> list[Message]:
    """Pairs of 102 tokens each."""
    return [
        message
        for n in range(first, first + count)
        for message in (calls(f"c{n}"), results(f"c{n}", content=f"view {n} " + "x" * 391))
    ]


def test_a_conversation_below_the_limit_is_sent_as_it_is():
    messages = [user("task"), *pairs(3)]
    small = compactor(size(messages))
    assert ask(small, messages) is None
    assert small.apply(messages) is messages


def test_room_that_is_to_be_left_of_the_context_is_a_limit_as_well():
    assert Compaction(context_tokens=20_000).limit == 12_000
    assert Compaction(context_tokens=20_000, free_tokens=5_000).limit == 15_000
    assert Compaction(context_tokens=20_000, above_tokens=9_000).limit == 9_000
    with pytest.raises(ValidationError, match="give above_tokens or context_tokens"):
        Compaction(free_tokens=5_000)
    with pytest.raises(
        ValidationError, match="free_tokens 8000 leaves nothing of context_tokens 4096"
    ):
        Compaction(context_tokens=4096)


def test_an_answer_with_calls_in_its_text_counts_as_it_was_written():
    written = VendorBlock(dialect="text-json", data={"text": "x" * 40})
    message = Message(role="assistant", content=(*calls("c1").content, written))
    assert estimate_tokens(message) == 10


def test_the_older_half_is_asked_for_and_replaced_by_its_summary():
    messages = [user("task"), *long_pairs(0, 6)]
    half = compactor(600)
    text = asked_text(half, messages)
    assert "The agent's task:\nuser: task" in text
    assert "assistant called look: {}\nresult of look: view 0 xxx" in text
    assert "view 3 " in text
    assert "view 4 " not in text
    half.accept(messages, " All quiet. ")
    sent = half.apply(messages)
    assert sent[0].text.startswith("task")
    assert sent[0].text.endswith("\nAll quiet.")
    assert list(sent[1:]) == messages[-4:]


def test_the_request_is_plain_text_to_the_same_model():
    messages = [user("task"), *long_pairs(0, 6)]
    request = ask(compactor(600), messages)
    assert request is not None
    assert (request.model, request.system, request.tools) == ("m", SYSTEM, ())
    assert (request.max_output_tokens, request.temperature) == (99, 0.5)
    assert [message.role for message in request.messages] == ["user"]
    assert not any(message.tool_calls or message.tool_results for message in request.messages)


def test_errors_are_told_from_results_and_parts_of_one_vendor_are_left_out():
    part = VendorBlock(dialect="anthropic", data={"type": "thinking", "thinking": "secret"})
    failed = results("c").model_copy(
        update={"content": (results("c").content[0].model_copy(update={"is_error": True}),)}
    )
    called = calls("c", text="I look.")
    turn = called.model_copy(update={"content": (part, *called.content)})
    text = asked_text(compactor(50), [user("task"), turn, failed, *long_pairs(0, 1)])
    assert "assistant: I look.\nassistant called look: {}\nerror of look: seen\n" in text
    assert "secret" not in text


def test_a_later_summary_folds_in_the_earlier_one():
    messages = [user("task"), *long_pairs(0, 6)]
    half = compactor(600)
    ask(half, messages)
    half.accept(messages, "All quiet.")
    messages += long_pairs(6, 4)
    text = asked_text(half, messages)
    assert "Summary of the history before:\nAll quiet.\n" in text
    assert "view 3 " not in text
    assert "view 4 " in text
    half.accept(messages, "Still quiet.")
    sent = half.apply(messages)
    assert "All quiet." not in sent[0].text
    assert "Still quiet." in sent[0].text
    assert list(sent[1:]) == messages[-4:]


def test_an_empty_summary_changes_nothing_and_is_tried_again_after_more_growth():
    messages = [user("task"), *long_pairs(0, 6)]
    half = compactor(600)
    assert ask(half, messages) is not None
    half.accept(messages, " \n")
    assert half.apply(messages) is messages
    messages += long_pairs(6, 1)
    assert ask(half, messages) is None
    messages += long_pairs(7, 1)
    assert "view 0 " in asked_text(half, messages)


def test_a_compaction_that_could_not_get_below_the_limit_is_not_asked_for_at_each_turn():
    messages = [user("t" * 4000), *long_pairs(0, 2)]
    half = compactor(600)
    assert ask(half, messages) is not None
    half.accept(messages, "All quiet.")
    assert list(half.apply(messages)[1:]) == messages[-2:]
    messages += long_pairs(2, 1)
    assert ask(half, messages) is None
    messages += long_pairs(3, 1)
    assert ask(half, messages) is not None


def test_the_last_turn_is_never_summarised():
    messages = [user("task"), *long_pairs(0, 1)]
    assert ask(compactor(10), messages) is None


def test_what_stands_before_the_task_stays():
    messages = [says("hello"), user("task"), *long_pairs(0, 6)]
    half = compactor(600)
    assert "assistant: hello\nuser: task" in asked_text(half, messages)
    half.accept(messages, "All quiet.")
    sent = half.apply(messages)
    assert sent[0] == messages[0]
    assert sent[1].text.startswith("task")


def test_another_conversation_is_not_sent_with_the_summary_of_this_one():
    messages = [user("task"), *long_pairs(0, 6)]
    half = compactor(600)
    ask(half, messages)
    half.accept(messages, "All quiet.")
    other = [user("another task"), *long_pairs(0, 6)]
    assert half.apply(other) is other
    assert len(half.apply(messages)) == 5
    assert "All quiet." not in asked_text(half, other)


def test_the_window_applies_to_what_compaction_leaves():
    messages = [user("task"), *long_pairs(0, 6)]
    half, window = compactor(600), SlidingWindow(Window(max_messages=3))
    ask(half, messages)
    half.accept(messages, "All quiet.")
    sent = window.visible(half.apply(messages))
    assert "All quiet." in sent[0].text
    assert list(sent[1:]) == messages[-2:]


@given(conversations(), st.integers(1, 80), st.data())
def test_what_is_sent_is_always_the_task_and_a_legal_tail(
    messages: list[Message], above: int, data: st.DataObject
):
    whole = list(messages)
    half = compactor(above)
    for end in sorted(data.draw(st.sets(st.integers(1, len(messages)), min_size=1))):
        if ask(half, messages[:end]) is not None:
            half.accept(messages[:end], data.draw(st.sampled_from(["", "All quiet."])))
        sent = half.apply(messages[:end])
        assert is_legal(sent)
        assert sent[0].content[0] == messages[0].content[0]
        assert list(sent[1:]) == messages[end - len(sent) + 1 : end]
    assert messages == whole


def test_the_engine_sends_the_summary_and_returns_the_whole_conversation():
    looks = [turn(calls=[call(f"c{n}", "look", n=n)]) for n in range(3)]
    trajectory, provider = run(
        [*looks, turn("All quiet."), turn("done")],
        tools=[returns("look", "x" * 400)],
        compaction={"above_tokens": 300},
    )
    *before, asked, sent = provider.requests
    assert [len(request.messages) for request in before] == [1, 3, 5]
    assert (asked.system, asked.tools) == (SYSTEM, ())
    assert sent.messages[0].text.endswith("\nAll quiet.")
    assert [message.role for message in sent.messages] == ["user", "assistant", "user"]
    assert len(trajectory.messages) == 8
    assert trajectory.final_text == "done"
    assert (trajectory.model_calls, trajectory.iterations) == (5, 4)
    assert set(trajectory.usage_by_tag) == {"main", "compaction"}


def test_a_compaction_that_is_cut_when_the_time_is_over_ends_the_run():
    looks = [turn(calls=[call(f"c{n}", "look", n=n)]) for n in range(3)]
    trajectory, provider = run(
        [*looks, OutOfTimeError("cut"), turn("done")],
        tools=[returns("look", "x" * 400)],
        compaction={"above_tokens": 300},
    )
    assert trajectory.termination_reason is TerminationReason.DURATION_EXCEEDED
    assert len(provider.requests) == 4


def test_a_compaction_that_fails_does_not_end_the_run():
    looks = [turn(calls=[call(f"c{n}", "look", n=n)]) for n in range(3)]
    trajectory, provider = run(
        [*looks, ModelCallError("down"), turn("done")],
        tools=[returns("look", "x" * 400)],
        compaction={"above_tokens": 300},
    )
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert len(provider.requests[-1].messages) == 7
