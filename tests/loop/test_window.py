"""What a window lets the model see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from hypothesis import given
from hypothesis import strategies as st

from harness.loop.window import SlidingWindow, estimate_tokens
from harness.schema.loop_config import Window
from harness.schema.messages import Message, Text, ToolCall, ToolResult, VendorBlock


def user(text: str) -> Message:
    return Message(role="user", content=(Text(text=text),))


def says(text: str) -> Message:
    return Message(role="assistant", content=(Text(text=text),))


def calls(*ids: str, text: str = "") -> Message:
    blocks = [ToolCall(id=id_, name="look", arguments="{}") for id_ in ids]
    return Message(role="assistant", content=(Text(text=text), *blocks))


def results(*ids: str, content: str = "seen") -> Message:
    blocks = [ToolResult(call_id=id_, name="look", content=content) for id_ in ids]
    return Message(role="user", content=tuple(blocks))


def pairs(count: int) -> list[Message]:
    return [message for n in range(count) for message in (calls(f"c{n}"), results(f"c{n}"))]


def visible(messages: Sequence[Message], **limits: int) -> Sequence[Message]:
    return SlidingWindow(Window(**limits)).visible(messages)


def test_a_conversation_that_fits_is_sent_as_it_is():
    messages = [user("task"), *pairs(2)]
    assert visible(messages, max_messages=5, max_tokens=1000) is messages


def test_the_task_counts_as_one_of_the_messages():
    messages = [user("task"), *pairs(6)]
    assert list(visible(messages, max_messages=9)) == [messages[0], *messages[-8:]]


def test_a_pair_that_fits_by_half_only_is_dropped_whole():
    messages = [user("task"), *pairs(3)]
    assert list(visible(messages, max_messages=4)) == [messages[0], *messages[-2:]]


def test_a_window_of_one_message_keeps_the_task_and_the_last_pair():
    messages = [user("task"), *pairs(2)]
    assert list(visible(messages, max_messages=1)) == [messages[0], *messages[-2:]]


def test_a_window_of_few_tokens_keeps_the_task_and_the_last_pair():
    messages = [user("task"), *pairs(3)]
    assert list(visible(messages, max_tokens=1)) == [messages[0], *messages[-2:]]


def test_tokens_of_the_task_count_too():
    messages = [user("t" * 400), *pairs(4)]
    size = sum(map(estimate_tokens, [messages[0], *messages[-4:]]))
    assert list(visible(messages, max_tokens=size)) == [messages[0], *messages[-4:]]
    assert list(visible(messages, max_tokens=size - 1)) == [messages[0], *messages[-2:]]


def test_the_narrower_of_two_limits_holds():
    messages = [user("task"), *pairs(6)]
    assert len(visible(messages, max_messages=5, max_tokens=10_000)) == 5
    assert len(visible(messages, max_messages=100, max_tokens=1)) == 3


def test_assistant_turns_in_a_row_stay_together():
    messages = [user("task"), *pairs(1), says("let me think"), says("done"), user("go on")]
    assert list(visible(messages, max_messages=2)) == [messages[0], *messages[-3:]]


def test_of_several_user_messages_before_the_first_answer_the_first_is_pinned():
    messages = [user("task"), user("more of it"), *pairs(1)]
    assert visible(messages, max_messages=4) is messages
    assert list(visible(messages, max_messages=3)) == [messages[0], *messages[2:]]


def test_an_answer_that_stands_before_the_first_user_message_is_pinned_with_it():
    messages = [says("hello"), user("task"), *pairs(2)]
    assert list(visible(messages, max_messages=4)) == [*messages[:2], *messages[-2:]]


def test_a_conversation_without_a_user_message_is_sent_as_it_is():
    messages = [says("hello"), says("again")]
    assert visible(messages, max_messages=1) is messages
    assert visible([], max_messages=1) == []


def test_one_token_is_four_characters_of_text_calls_results_and_vendor_parts():
    assert estimate_tokens(user("12345678")) == 2
    assert estimate_tokens(user("123456789")) == 3
    assert estimate_tokens(calls("abcd")) == 3
    assert estimate_tokens(results("abcd", content="x" * 36)) == 10
    part = VendorBlock(dialect="openai-chat", data={"type": "image"})
    assert estimate_tokens(Message(role="user", content=(part,))) == 5


def test_a_user_turn_that_grew_counts_with_its_new_size():
    window = SlidingWindow(Window(max_tokens=50))
    messages = [user("task"), *pairs(4)]
    assert window.visible(messages) is messages
    grown = [*messages[:-1], Message(role="user", content=(Text(text="x" * 160),))]
    assert list(window.visible(grown)) == [messages[0], *grown[-4:]]


def test_another_conversation_starts_the_window_anew():
    window = SlidingWindow(Window(max_messages=3))
    window.visible([user("task"), *pairs(9)])
    other = [user("another task"), *pairs(1)]
    assert window.visible(other) is other


class Counting(Sequence[Message]):
    """Counts the messages that are read."""

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.reads = 0

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: Any) -> Any:
        found = self.messages[index]
        self.reads += len(found) if isinstance(found, list) else 1
        return found


def test_what_an_iteration_costs_does_not_grow_with_the_history():
    window = SlidingWindow(Window(max_messages=11, max_tokens=10_000))
    messages = Counting([user("task")])
    reads = []
    for n in range(300):
        messages.messages += [calls(f"c{n}"), results(f"c{n}")]
        messages.reads = 0
        window.visible(messages)
        reads.append(messages.reads)
    assert reads[20] == reads[-1] < 40


def is_legal(messages: Sequence[Message]) -> bool:
    """As strict as a vendor: every result right after its call, every call answered."""
    for place, message in enumerate(messages):
        asked = [call.id for call in messages[place - 1].tool_calls] if place else []
        if [result.call_id for result in message.tool_results] != asked:
            return False
    return True


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Legal ones: several user turns first, paused turns, texts, parallel calls."""
    messages = [user("x" * draw(st.integers(0, 40))) for _ in range(draw(st.integers(1, 2)))]
    for n in range(draw(st.integers(0, 12))):
        size = draw(st.integers(0, 80))
        kind = draw(st.sampled_from(["pair", "pair", "pair", "parallel", "text", "paused"]))
        if kind == "paused":
            messages.append(says("x" * size))
        if kind in ("text", "paused"):
            messages += [says("x" * size), user("go on")]
        else:
            ids = [f"c{n}"] if kind == "pair" else [f"c{n}", f"d{n}"]
            messages += [calls(*ids), results(*ids, content="x" * size)]
    return messages


limits = st.tuples(st.integers(1, 20) | st.none(), st.integers(1, 120) | st.none()).filter(any)


@given(conversations(), limits, st.data())
def test_a_window_is_the_longest_legal_one_that_fits_or_else_the_shortest(
    messages: list[Message], limits: tuple[int | None, int | None], data: st.DataObject
):
    max_messages, max_tokens = limits
    limit = Window(max_messages=max_messages, max_tokens=max_tokens)
    window = SlidingWindow(limit)
    for end in sorted(data.draw(st.sets(st.integers(1, len(messages)), max_size=4))):
        window.visible(messages[:end])
    seen = list(window.visible(messages))

    def fits(candidate: list[Message]) -> bool:
        size = sum(map(estimate_tokens, candidate))
        return len(candidate) <= (max_messages or 1000) and size <= (max_tokens or 10_000)

    cuts = [
        place
        for place in range(2, len(messages))
        if messages[place].role == "assistant" and messages[place - 1].role == "user"
    ]
    candidates = [messages, *([messages[0], *messages[cut:]] for cut in cuts)]
    assert all(map(is_legal, candidates))
    assert seen == next(filter(fits, candidates), candidates[-1])
