from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.errors import MalformedAnswerError, ModelCallError, OverloadedError, RateLimitedError
from harness.providers.openai_responses import OpenAIResponses
from harness.schema.messages import (
    Block,
    Message,
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    VendorBlock,
)
from harness.values import ModelDelta, ModelRequest

ASK = Message(role="user", content=(Text(text="Go."),))
DIALECT = "openai-responses"
REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "zz",
}


def to_request(request: ModelRequest, *, stream: bool = False) -> dict[str, Any]:
    return OpenAIResponses().to_request(request, stream=stream)


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest(model="m", messages=messages or (ASK,), **{"system": None, **changes})


def assistant(*content: Block) -> Message:
    return Message(role="assistant", content=content)


def answer(
    *output: dict[str, Any], status: str | None = "completed", **rest: Any
) -> dict[str, Any]:
    return {"id": "r", "model": "m-2026", "status": status, "output": [*output], **rest}


def said(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg", "role": "assistant", "content": [*parts], **more}


def out(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def call(call_id: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    known = {"type": "function_call", "call_id": call_id, "name": "shell"}
    return {**known, "arguments": arguments, **more}


def test_a_conversation_becomes_items_in_order() -> None:
    body = to_request(
        request(
            ASK,
            assistant(
                VendorBlock(dialect=DIALECT, data=REASONING),
                Text(text="I look."),
                ToolCall(id="a", name="shell", arguments='{"command": "ls"'),
                ToolCall(id="b", name="shell", arguments="{}"),
            ),
            Message(
                role="user",
                content=(
                    ToolResult(call_id="a", name="shell", content="broken", is_error=True),
                    ToolResult(call_id="b", name="shell", content=""),
                    Text(text="Go on."),
                ),
            ),
            system="Be brief.",
        )
    )
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        REASONING,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look."}],
        },
        call("a", '{"INVALID_JSON": "{\\"command\\": \\"ls\\""}'),
        call("b"),
        {"type": "function_call_output", "call_id": "a", "output": "broken"},
        {"type": "function_call_output", "call_id": "b", "output": ""},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
    ]


def test_parameters_are_sent_and_absent_ones_are_not() -> None:
    spec = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
    body = to_request(request(tools=(spec,), temperature=0.0, max_output_tokens=90))
    body.pop("input")
    assert body == {
        "model": "m",
        "tools": [
            {
                "type": "function",
                "name": "shell",
                "description": "Run.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "max_output_tokens": 90,
        "temperature": 0.0,
        "store": False,
    }
    # Asked to include encrypted reasoning, the vendor refuses models that do not reason.
    assert set(to_request(request())) == {"model", "input", "max_output_tokens", "store"}
    assert to_request(request(), stream=True) == to_request(request()) | {"stream": True}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("required", "required"),
        ("none", "none"),
        ("shell", {"type": "function", "name": "shell"}),
    ],
)
def test_tool_choice(choice: str, sent: object) -> None:
    spec = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
    body = to_request(request(tools=(spec,), tool_choice=choice))
    assert body.get("tool_choice") == sent
    assert body["tools"]
    assert "tool_choice" not in to_request(request(tool_choice=choice))


def test_parts_of_this_format_pass_and_those_of_others_are_left_out() -> None:
    image = VendorBlock(dialect=DIALECT, data={"type": "input_image", "image_url": "data:x"})
    other = VendorBlock(dialect="openai-chat", data={"type": "image_url"})
    user = Message(role="user", content=(Text(text="See"), image, other))
    assert to_request(request(user))["input"][0]["content"] == [
        {"type": "input_text", "text": "See"},
        image.data,
    ]


def test_an_answer_with_reasoning_and_calls_comes_back_in_order() -> None:
    turn = OpenAIResponses().from_response(
        answer(
            REASONING,
            said(out("I "), out("look.")),
            call("a", '{"n": 1.0,  "n": 2}', id="fc_1", status="completed"),
            call("b", "{oops"),
            usage={
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 6},
                "output_tokens": 5,
            },
        )
    )
    assert turn == ModelTurn(
        content=(
            VendorBlock(dialect=DIALECT, data=REASONING),
            Text(text="I "),
            Text(text="look."),
            ToolCall(id="a", name="shell", arguments='{"n": 1.0,  "n": 2}'),
            ToolCall(id="b", name="shell", arguments="{oops"),
        ),
        stop=StopReason.TOOL_USE,
        usage=Usage(input=30, output=5, cache_write=6, cache_read=64),
        model="m-2026",
    )


def test_the_phase_of_each_message_survives_the_way_there_and_back() -> None:
    first = said(out("Soon."), phase="commentary")
    second = said(out("Done."), phase="final_answer")
    turn = OpenAIResponses().from_response(answer(first, second))
    assert "".join(b.text for b in turn.content if isinstance(b, Text)) == "Soon.Done."
    back = to_request(request(ASK, assistant(*turn.content)))["input"][1:]
    assert [(item["phase"], item["content"][0]["text"]) for item in back] == [
        ("commentary", "Soon."),
        ("final_answer", "Done."),
    ]


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (answer(said(out("x"))), StopReason.END_TURN),
        (answer(call("a")), StopReason.TOOL_USE),
        (answer(said({"type": "refusal", "refusal": "No."})), StopReason.REFUSAL),
        (
            answer(
                said(out("x")),
                status="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            StopReason.MAX_TOKENS,
        ),
        (
            answer(status="incomplete", incomplete_details={"reason": "content_filter"}),
            StopReason.REFUSAL,
        ),
    ],
)
def test_status_and_content_give_the_stop_reason(body: dict[str, Any], stop: StopReason) -> None:
    assert OpenAIResponses().from_response(body).stop is stop


def test_a_refusal_is_text() -> None:
    turn = OpenAIResponses().from_response(answer(said({"type": "refusal", "refusal": "No."})))
    assert turn.content == (Text(text="No."),)


@pytest.mark.parametrize(
    ("body", "expected", "says"),
    [
        ({}, MalformedAnswerError, "'output' is None"),
        (answer("x"), MalformedAnswerError, "'x'"),  # type: ignore[arg-type]
        (answer(status=None), MalformedAnswerError, "'status' is None"),
        (answer(status="queued"), MalformedAnswerError, "'queued'"),
        (answer(status="incomplete"), MalformedAnswerError, "reason None"),
        (answer(said({"type": "output_text"})), MalformedAnswerError, "'text' is None"),
        (answer({"type": "message"}), MalformedAnswerError, "'content' is None"),
        (answer(call("a", 5)), MalformedAnswerError, "'arguments' is 5"),  # type: ignore[arg-type]
        (answer(status="failed"), MalformedAnswerError, "'failed'"),
        (
            answer(status="failed", error={"code": "server_error", "message": "sorry"}),
            OverloadedError,
            "sorry",
        ),
        (
            answer(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}),
            RateLimitedError,
            "slow",
        ),
        ({"error": {"message": "because"}}, ModelCallError, "because"),
    ],
)
def test_what_is_no_answer_is_named(
    body: dict[str, Any], expected: type[ModelCallError], says: str
) -> None:
    with pytest.raises(ModelCallError) as caught:
        OpenAIResponses().from_response(body)
    assert type(caught.value) is expected
    assert says in str(caught.value)


PLAIN: dict[str, Any] = {
    "model": "m",
    "instructions": "S",
    "tools": [{"type": "function", "name": "t", "parameters": {"x": {"default": None}}}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look."}],
        },
        call("a", '{"x": null}'),
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_text", "text": "done"}],
        },
    ],
}


def respelled() -> dict[str, Any]:
    body = copy.deepcopy(PLAIN)
    body |= {"stream": False, "metadata": None}
    body["tools"][0]["description"] = None
    user, assistant, wire_call, result = body["input"]
    del user["type"]
    user["content"] = "Go."
    assistant["content"][0] |= {"annotations": [], "logprobs": []}
    wire_call["status"] = None
    result["output"] = "done"
    return body


def test_spellings_that_mean_the_same_split_the_same() -> None:
    dialect = OpenAIResponses()
    assert dialect.split(respelled()) == dialect.split(PLAIN)
    assert dialect.split(PLAIN) == (
        {key: value for key, value in PLAIN.items() if key != "input"},
        PLAIN["input"],
    )
    assert dialect.split({"input": "Go."}) == ({}, PLAIN["input"][:1])


def test_split_leaves_the_body_alone() -> None:
    body = respelled()
    OpenAIResponses().split(body)
    assert body == respelled()


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(instructions="T"),
        lambda b: b.update(stream=True),
        lambda b: b["input"][0].update(content="Go!"),
        lambda b: b["input"][2].update(arguments='{"x":null}'),
        lambda b: b["input"][3].update(output="x"),
        lambda b: b["tools"][0].update(parameters={"x": {}}),
    ],
)
def test_what_changes_the_question_changes_the_split(change: Any) -> None:
    body = copy.deepcopy(PLAIN)
    change(body)
    assert OpenAIResponses().split(body) != OpenAIResponses().split(PLAIN)


@pytest.mark.parametrize("items", [None, [1], {}])
def test_a_body_without_proper_input_is_all_parameters(items: object) -> None:
    body: Any = {"model": "m", "input": items, "n": None}
    kept = {"model": "m", "input": items} if items is not None else {"model": "m"}
    assert OpenAIResponses().split(body) == (kept, [])


def test_odd_values_at_known_places_are_kept() -> None:
    body: dict[str, Any] = {"tools": ["x"], "input": [{"type": "message", "content": [3]}]}
    assert OpenAIResponses().split(body) == ({"tools": ["x"]}, body["input"])


def read(*events: dict[str, Any]) -> tuple[ModelTurn, list[ModelDelta]]:
    dialect = OpenAIResponses()
    assembler = dialect.assembler()
    deltas = [delta for event in events for delta in assembler.add(event)]
    return dialect.from_response(assembler.body()), deltas


def item(kind: str, value: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "item": value, "output_index": index}


def test_items_that_come_whole_are_shown_whole() -> None:
    first, second = said(out("Hi")), call("a", '{"x": 1}')
    done = {"type": "response.completed", "response": answer(first, second)}
    turn, deltas = read(item("done", first), item("done", second, 1), done)
    assert turn == OpenAIResponses().from_response(answer(first, second))
    assert deltas == [
        ModelDelta("text", "Hi"),
        ModelDelta("call_start", "shell", "a"),
        ModelDelta("call_arguments", '{"x": 1}', "a"),
        ModelDelta("call_done", call_id="a"),
    ]


@pytest.mark.parametrize("output", [None, []])
def test_items_missing_in_the_last_event_are_taken_from_the_others(output: object) -> None:
    last = answer() | {"output": output}
    turn, _ = read(
        item("done", call("b"), 3),
        item("done", said(out("Hi")), 0),
        {"type": "response.completed", "response": last},
    )
    assert turn.content == (Text(text="Hi"), ToolCall(id="b", name="shell", arguments="{}"))


def test_a_failed_response_fails_as_without_streaming() -> None:
    failed = answer(status="failed", error={"code": "server_error", "message": "sorry"})
    with pytest.raises(OverloadedError, match="sorry"):
        read({"type": "response.failed", "response": failed})


def test_an_error_event_is_told_apart() -> None:
    with pytest.raises(RateLimitedError, match="slow"):
        read({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None})


def test_a_stream_that_ends_before_its_answer_is_malformed() -> None:
    with pytest.raises(MalformedAnswerError, match="ended before the answer did"):
        read(item("done", said(out("Hi"))))


def test_reasoning_that_is_only_an_id_is_not_sent_since_nothing_is_stored() -> None:
    bare = VendorBlock(dialect=DIALECT, data=REASONING | {"encrypted_content": None})
    open_text = [{"type": "reasoning_text", "text": "hm"}]
    local = VendorBlock(dialect=DIALECT, data=bare.data | {"content": [*open_text]})
    body = to_request(request(ASK, assistant(bare, local, Text(text="Hi."))))
    assert [item["type"] for item in body["input"]] == ["message", "reasoning", "message"]
    assert body["input"][1]["content"] == open_text
