"""The provider that stands in front of one that speaks text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loop.text_protocols import PROTOCOLS, TextProtocolProvider
from harness.protocols import OnDelta
from harness.providers.scripted import turn
from harness.schema.messages import (
    Message,
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from harness.values import ModelDelta, ModelRequest

SHELL = ToolSpec(name="shell", description="Runs a command.", parameters={"type": "object"})
LS = '{"name": "shell", "arguments": {}}'
ODD = '{"analysis": "A.", "plan": "P.", "commands": [{"keystrokes": "ls\\n"}]}'


class TextModel:
    """Answers with its turns in order, word by word when it is streamed."""

    def __init__(self, turns: Iterable[ModelTurn]) -> None:
        self.turns = iter(turns)
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        self.requests.append(request)
        answer = next(self.turns)
        if on_delta is not None:
            text = Message(role="assistant", content=answer.content).text
            for place in range(0, len(text), 4):
                on_delta(ModelDelta("text", text[place : place + 4]))
        return answer


def user(text: str) -> Message:
    return Message(role="user", content=(Text(text=text),))


def request(messages: Sequence[Message] = (user("Go."),), **settings: object) -> ModelRequest:
    known: dict[str, Any] = {"model": "m", "system": "Be brief.", "tools": (SHELL,)}
    return ModelRequest(messages=messages, **(known | settings))


def assistant(answer: ModelTurn) -> Message:
    return Message(role="assistant", content=answer.content)


def results(answer: ModelTurn, content: str = "ok") -> Message:
    calls = assistant(answer).tool_calls
    return Message(
        role="user",
        content=tuple(ToolResult(call_id=c.id, name=c.name, content=content) for c in calls),
    )


def ids(answer: ModelTurn) -> list[str]:
    return [call.id for call in assistant(answer).tool_calls]


def test_tools_are_described_in_the_system_prompt_only() -> None:
    model = TextModel([turn("Done.")])
    TextProtocolProvider(model, PROTOCOLS["json"]).complete(request(tool_choice="auto"))
    (asked,) = model.requests
    assert (asked.tools, asked.tool_choice) == ((), "auto")
    assert asked.system is not None
    assert asked.system.startswith("Be brief.\n\nTools, and how to call them:")


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("required", "Every answer must call a tool."),
        ("shell", "Your next answer must call the tool `shell`."),
    ],
)
def test_a_tool_choice_is_put_into_words(choice: str, said: str) -> None:
    model = TextModel([turn("Done.")])
    TextProtocolProvider(model, PROTOCOLS["json"]).complete(request(tool_choice=choice))
    assert model.requests[0].tool_choice == "auto"
    assert model.requests[0].system is not None
    assert model.requests[0].system.endswith(said)


@pytest.mark.parametrize("settings", [{"tools": ()}, {"tool_choice": "none"}])
def test_where_no_tool_is_offered_nothing_is_said_or_read(settings: dict[str, Any]) -> None:
    model = TextModel([turn(LS)])
    answer = TextProtocolProvider(model, PROTOCOLS["json"]).complete(request(**settings))
    assert answer == turn(LS)
    assert model.requests[0].system == "Be brief."
    assert model.requests[0].tools == ()


def test_ids_go_on_after_those_of_a_run_that_is_taken_up_again() -> None:
    earlier = turn(calls=[("call_41", "shell", "{}"), ("toolu_99", "shell", "{}")])
    history = [user("Go."), assistant(earlier), results(earlier)]
    provider = TextProtocolProvider(TextModel([turn(LS * 2)]), PROTOCOLS["json"])
    assert ids(provider.complete(request(history))) == ["call_42", "call_43"]


def test_ids_never_go_back_when_the_window_drops_messages() -> None:
    provider = TextProtocolProvider(TextModel([turn(LS * 3), turn(LS)]), PROTOCOLS["json"])
    assert ids(provider.complete(request())) == ["call_1", "call_2", "call_3"]
    assert ids(provider.complete(request())) == ["call_4"]


def test_ids_of_an_odd_form_are_no_obstacle() -> None:
    earlier = turn(calls=[(f"call_{'9' * 5000}", "shell", "{}"), ("call_x", "shell", "{}")])
    history = [user("Go."), assistant(earlier), results(earlier)]
    provider = TextProtocolProvider(TextModel([turn(LS)]), PROTOCOLS["json"])
    assert ids(provider.complete(request(history))) == ["call_1"]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_the_model_wrote_goes_back_word_for_word(name: str) -> None:
    protocol = PROTOCOLS[name]
    written = "\n".join(
        protocol.render_call(ToolCall(id="x", name="shell", arguments=raw))
        for raw in ('{"a":  1}', "{}")
    )
    thinking = VendorBlock(dialect="anthropic", data={"type": "thinking"})
    first = turn(f"So:\n{written}\n ")
    first = first.model_copy(update={"content": (thinking, *first.content)})
    model = TextModel([first, turn("Done.")])
    provider = TextProtocolProvider(model, protocol)
    answer = provider.complete(request())
    assert answer.stop is StopReason.TOOL_USE
    provider.complete(request([user("Go."), assistant(answer), results(answer)]))
    assert model.requests[1].messages[1].content == first.content
    assert len(model.requests[1].messages[2].content) == 1
    for call_id in ids(answer):
        assert f"{call_id} (" in model.requests[1].messages[2].text


def test_a_final_answer_is_cut_out_and_goes_back_whole() -> None:
    model = TextModel([turn("Thought: I know.\nFinal Answer: 42"), turn("Final Answer: 43")])
    provider = TextProtocolProvider(model, PROTOCOLS["react"])
    answer = provider.complete(request())
    assert assistant(answer).text == "42"
    assert answer.stop is StopReason.END_TURN
    provider.complete(request([user("Go."), assistant(answer), user("Sure?")]))
    assert model.requests[1].messages[1].text == "Thought: I know.\nFinal Answer: 42"
    assert model.requests[1].messages[2].text == "Sure?"


@pytest.mark.parametrize(
    ("written", "start", "end"),
    [
        (
            "Done.",
            "Previous response had parsing errors:\n- No valid JSON",
            "one correct JSON object.",
        ),
        (ODD, "Previous response had warnings:\n- Command 1: duration is missing", "\n\n$ ls"),
    ],
)
def test_what_is_said_about_an_answer_stands_before_the_results(
    written: str, start: str, end: str
) -> None:
    model = TextModel([turn(written), turn(ODD), turn(ODD)])
    provider = TextProtocolProvider(model, PROTOCOLS["terminus2"])
    answer = provider.complete(request())
    history = [user("Go."), assistant(answer), results(answer, "$ ls")]
    for _ in range(2):
        provider.complete(request(history))
        shown = model.requests[-1].messages[2]
        assert shown.text.startswith(start)
        assert shown.text.endswith(end)
        assert len(shown.content) == 1


def test_a_turn_of_images_gets_no_empty_text() -> None:
    image = VendorBlock(dialect="anthropic", data={"type": "image"})
    model = TextModel([turn("A cat.")])
    message = Message(role="user", content=(image,))
    TextProtocolProvider(model, PROTOCOLS["json"]).complete(request([message]))
    assert model.requests[0].messages == (message,)


def test_the_pieces_of_a_stream_pass_and_the_calls_follow() -> None:
    seen: list[ModelDelta] = []
    provider = TextProtocolProvider(TextModel([turn(f"So: {LS}")]), PROTOCOLS["json"])
    provider.complete(request(), seen.append)
    texts = [delta.text for delta in seen if delta.kind == "text"]
    assert "".join(texts) == f"So: {LS}"
    assert seen[len(texts) :] == [
        ModelDelta("call_start", "shell", "call_1"),
        ModelDelta("call_arguments", "{}", "call_1"),
        ModelDelta("call_done", "", "call_1"),
    ]


@pytest.mark.parametrize("name", PROTOCOLS)
@given(text=st.text(alphabet='{}[]<>",:\nab') | st.sampled_from([LS, ODD, "Final Answer: 4"]))
def test_streamed_is_not_streamed(name: str, text: str) -> None:
    def answer(on_delta: OnDelta | None) -> ModelTurn:
        provider = TextProtocolProvider(TextModel([turn(text)]), PROTOCOLS[name])
        return provider.complete(request(), on_delta)

    def ignore(delta: ModelDelta) -> None:
        assert delta.kind

    assert answer(ignore) == answer(None)
