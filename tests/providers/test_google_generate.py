"""Google's wire format: what is sent, what is read, and what the vendor would not accept."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import (
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
)
from harness.providers.google_generate import CONTINUE, GoogleGenerate
from harness.providers.legal_names import original
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
from harness.schema.record import storable
from harness.values import ModelRequest
from tests.providers.lookalikes.google import check, pieces
from tests.providers.lookalikes.server import Rejected
from tests.providers.random_transcripts import (
    as_json,
    objects,
    requests,
    same_arguments,
    texts,
    transcripts,
)

NAME = "google-generate"
DIALECT = GoogleGenerate()
SHELL = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
OTHER = ToolSpec(name="other", description="Other.", parameters={"type": "object"})


def user(*content: Block) -> Message:
    return Message(role="user", content=content)


def assistant(*content: Block) -> Message:
    return Message(role="assistant", content=content)


def said(text: str) -> Text:
    return Text(text=text)


def request(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(model="m", system="S", messages=messages, tools=(SHELL,), **more)


def wire(asked: ModelRequest, *, stream: bool = False) -> dict[str, Any]:
    return DIALECT.to_request(asked, stream=stream)


def on_the_wire(body: dict[str, Any]) -> dict[str, Any]:
    """What arrives: JSON, without what the URL says."""
    sent: dict[str, Any] = json.loads(json.dumps(body, allow_nan=False))
    return {key: value for key, value in sent.items() if key not in ("model", "stream")}


CALL = ToolCall(id="a", name="shell", arguments="{}")
RESULT = ToolResult(call_id="a", name="shell", content="done")
CONVERSATION = request(user(said("Hi")), assistant(CALL), user(RESULT, said("Go on")))


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", None),
        ("required", {"mode": "ANY"}),
        ("shell", {"mode": "ANY", "allowedFunctionNames": ["shell"]}),
        ("none", {"mode": "NONE"}),
    ],
)
def test_the_choice_of_a_tool_has_its_mode(choice: str, config: Any) -> None:
    body = wire(replace(CONVERSATION, tool_choice=choice))
    assert body.get("toolConfig") == (config and {"functionCallingConfig": config})
    check(on_the_wire(body))


def test_without_tools_nothing_is_said_about_calling() -> None:
    body = wire(replace(request(user(said("Hi"))), tools=(), tool_choice="required"))
    assert "toolConfig" not in body
    assert "tools" not in body
    check(on_the_wire(body))


def test_neighbours_of_one_role_are_one_turn_and_none_is_empty() -> None:
    foreign = VendorBlock(dialect="openai-chat", data={"reasoning_content": "hm"})
    body = wire(
        request(user(said("a")), assistant(foreign, said("")), user(said("b")), user(said("")))
    )
    assert body["contents"] == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


def test_results_come_first_and_say_whether_they_are_errors() -> None:
    image = VendorBlock(dialect=NAME, data={"inlineData": {"mimeType": "image/png", "data": "AA"}})
    failed = ToolResult(call_id="b", name="shell", content="no", is_error=True)
    second = CALL.model_copy(update={"id": "b"})
    body = wire(request(user(image), assistant(CALL, second), user(said("x"), RESULT, failed)))
    check(on_the_wire(body))
    first, _, last = body["contents"]
    assert first["parts"] == [image.data]
    assert last["parts"] == [
        {"functionResponse": {"id": "a", "name": "shell", "response": {"result": "done"}}},
        {"functionResponse": {"id": "b", "name": "shell", "response": {"error": "no"}}},
        {"text": "x"},
    ]


def answer(*parts: Any, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [*parts]}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("STOP", StopReason.END_TURN),
        ("MAX_TOKENS", StopReason.MAX_TOKENS),
        ("SAFETY", StopReason.REFUSAL),
        ("RECITATION", StopReason.REFUSAL),
        ("PROHIBITED_CONTENT", StopReason.REFUSAL),
        ("BLOCKLIST", StopReason.REFUSAL),
        ("SPII", StopReason.REFUSAL),
    ],
)
def test_why_the_model_stopped(finish: str, stop: StopReason) -> None:
    assert DIALECT.from_response(answer({"text": "x"}, finish=finish)).stop is stop
    assert DIALECT.from_response({"candidates": [{"finishReason": finish}]}).content == ()


@pytest.mark.parametrize("finish", ["STOP", "UNEXPECTED_TOOL_CALL"])
def test_a_call_stops_the_model_for_its_result(finish: str) -> None:
    turn = DIALECT.from_response(answer({"functionCall": {"name": "shell"}}, finish=finish))
    assert turn.stop is StopReason.TOOL_USE


@pytest.mark.parametrize(
    "finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "NEW_REASON", None, 3]
)
def test_an_answer_without_a_usable_end_is_malformed(finish: Any) -> None:
    body = answer({"text": "x"}, finish=finish)
    body["candidates"][0]["finishMessage"] = "Malformed function call: shell("
    with pytest.raises(MalformedAnswerError, match="Malformed function call: shell"):
        DIALECT.from_response(body)


def test_a_blocked_prompt_is_a_refusal() -> None:
    feedback: dict[str, Any] = {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "v"}
    turn = DIALECT.from_response(feedback | {"usageMetadata": {"promptTokenCount": 3}})
    assert turn.stop is StopReason.REFUSAL
    assert turn.content == (said("The prompt was blocked: SAFETY."),)
    assert turn.usage == Usage(input=3)
    assert turn.model == "v"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"candidates": []},
        {"candidates": {}},
        {"candidates": ["x"]},
        answer("x"),
        answer({"functionCall": "x"}),
        answer({"functionCall": {}}),
        answer({"functionCall": {"name": "x", "args": "y"}}),
    ],
)
def test_what_the_format_does_not_allow_is_malformed(body: Any) -> None:
    with pytest.raises(MalformedAnswerError):
        DIALECT.from_response(body)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, None),
        ({}, None),
        ({"promptTokenCount": 0}, Usage(input=0)),
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 7,
                "thoughtsTokenCount": 5,
                "toolUsePromptTokenCount": 2,
                "totalTokenCount": 114,
            },
            Usage(input=42, output=12, cache_read=60),
        ),
    ],
)
def test_tokens_fall_into_our_buckets(reported: Any, usage: Usage | None) -> None:
    assert DIALECT.from_response(answer(usageMetadata=reported)).usage == usage


def test_thoughts_and_signatures_are_kept_with_their_part_and_sent_back() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"text": "I look.", "thoughtSignature": "YQ=="},
        {
            "functionCall": {"id": "a", "name": "shell", "args": {"x": 1}},
            "thoughtSignature": "Yg==",
        },
        {"functionCall": {"id": "b", "name": "shell", "args": {}}},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"text": "", "thoughtSignature": "Yw=="},
    ]
    turn = DIALECT.from_response(answer(*parts))
    back = Message(role="assistant", content=turn.content)
    assert back.text == "I look."
    assert [call.arguments for call in back.tool_calls] == ['{"x": 1}', "{}"]
    body = wire(request(user(said("Hi")), back, user(said("x"))))
    assert body["contents"][1] == {"role": "model", "parts": parts}


def test_a_signature_whose_part_is_gone_is_not_sent() -> None:
    content = DIALECT.from_response(
        answer({"functionCall": {"name": "shell"}, "thoughtSignature": "YQ=="}, {"text": "x"})
    ).content
    lost = [block for block in content if not isinstance(block, ToolCall)]
    body = wire(request(user(said("Hi")), assistant(lost[0]), user(said("x"))))
    assert len(body["contents"]) == 1


def test_calls_without_an_id_get_one_that_is_theirs_alone() -> None:
    calls = [{"functionCall": {"name": "shell"}}, {"functionCall": {"name": "shell"}}]
    ids: list[str] = []
    for response_id in ("r1", "r2"):
        body = answer(*calls, responseId=response_id)
        turn = DIALECT.from_response(body)
        assert DIALECT.from_response(copy.deepcopy(body)) == turn
        ids += [block.id for block in turn.content if isinstance(block, ToolCall)]
    assert len(set(ids)) == 4


def test_spellings_that_mean_the_same_have_one_identity() -> None:
    body = on_the_wire(wire(CONVERSATION)) | {"model": "m"}
    other = copy.deepcopy(body) | {"model": "models/m", "cachedContent": None, "stream": False}
    other["systemInstruction"]["role"] = "user"
    other["toolConfig"] = {"functionCallingConfig": {"mode": "AUTO"}}
    del other["contents"][0]["role"]
    del other["contents"][1]["parts"][0]["functionCall"]["args"]
    other["contents"][2]["parts"][1]["thought"] = None
    assert DIALECT.split(other) == DIALECT.split(body)
    for key, value in (("model", "n"), ("stream", True), ("cachedContent", "c")):
        assert DIALECT.split(body | {key: value})[0] != DIALECT.split(body)[0]


def test_a_body_that_is_no_request_is_all_parameters() -> None:
    assert DIALECT.split({"contents": "x", "a": None}) == ({"contents": "x"}, [])


Change = Callable[[dict[str, Any]], Any]

BROKEN: dict[str, Change] = {
    "two turns of one role": lambda body: body["contents"].insert(
        1, {"role": "user", "parts": [{"text": "x"}]}
    ),
    "a response without its call": lambda body: body["contents"][1].update(
        parts=[{"text": "no call"}]
    ),
    "an unanswered call": lambda body: body["contents"][2]["parts"].pop(0),
    "fewer responses than calls": lambda body: body["contents"][1]["parts"].append(
        {"functionCall": {"name": "shell"}}
    ),
    "more responses than calls": lambda body: body["contents"][2]["parts"].append(
        body["contents"][2]["parts"][0]
    ),
    "a response with another id": lambda body: body["contents"][2]["parts"][0][
        "functionResponse"
    ].update(id="z"),
    "a response with another name": lambda body: body["contents"][2]["parts"][0][
        "functionResponse"
    ].update(name="z"),
    "a call at the end": lambda body: body["contents"].pop(),
    "no parts": lambda body: body["contents"][0].update(parts=[]),
    "an empty text": lambda body: body["contents"][0].update(parts=[{"text": ""}]),
    "no contents": lambda body: body.update(contents=[]),
    "another role": lambda body: body["contents"][0].update(role="assistant"),
    "a name that is not declared": lambda body: body.update(
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["gone"]}}
    ),
    "a choice without tools": lambda body: (
        body.pop("tools"),
        body.update(toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
    ),
    "an illegal function name": lambda body: body["tools"][0]["functionDeclarations"][0].update(
        name="1 shell"
    ),
    "an unknown field": lambda body: body.update(model="m"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_the_lookalike_refuses_a_broken_request(change: Change) -> None:
    body = on_the_wire(wire(CONVERSATION))
    check(body)
    change(body)
    with pytest.raises(Rejected):
        check(body)


def vendor(data: dict[str, Any], dialect: str = NAME) -> VendorBlock:
    return VendorBlock(dialect=dialect, data=data)


leads = st.lists(
    st.sampled_from(
        [
            vendor({"text": "hm", "thought": True}),
            vendor({"next_part": {"thoughtSignature": "c2ln"}}),
            vendor({"text": "", "thoughtSignature": "c2ln"}),
            vendor({"type": "thinking", "thinking": "hm"}, "anthropic-messages"),
        ]
    ),
    max_size=2,
)
images = st.lists(
    st.sampled_from(
        [
            vendor({"inlineData": {"mimeType": "image/png", "data": "AA=="}}),
            vendor({"fileData": {"fileUri": "files/1"}}),
            vendor({"type": "image"}, "anthropic-messages"),
        ]
    ),
    max_size=2,
)
random_transcripts = transcripts(leads, images)


@given(requests(random_transcripts), st.booleans())
def test_the_vendor_accepts_every_request(asked: ModelRequest, stream: bool) -> None:
    before = copy.deepcopy(asked)
    body = as_json(wire(asked, stream=stream))
    check(on_the_wire(body))
    assert asked == before
    assert body.get("stream", False) is stream


@given(random_transcripts)
def test_a_transcript_comes_back_from_the_wire(messages: tuple[Message, ...]) -> None:
    contents = on_the_wire(wire(request(*messages)))["contents"]
    parts = [part for turn in contents for part in turn["parts"] if part != CONTINUE]
    turn = DIALECT.from_response(answer(*(p for p in parts if "functionCall" in p)))
    calls = [call for message in messages for call in message.tool_calls]
    back = [block for block in turn.content if isinstance(block, ToolCall)]
    for after, before in zip(back, calls, strict=True):
        assert (after.id, after.name) == (before.id, before.name)
        assert same_arguments(after.arguments, storable(before.arguments))
    results = [result for message in messages for result in message.tool_results]
    answered = [_read(part["functionResponse"]) for part in parts if "functionResponse" in part]
    assert answered == [
        result.model_copy(update={"content": storable(result.content)}) for result in results
    ]
    text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    assert text == storable("".join(message.text for message in messages))
    said = [block for message in messages for block in message.content]
    own = [b.data for b in said if isinstance(b, VendorBlock) and b.dialect == NAME]
    assert [data for data in own if "next_part" not in data] == [p for p in parts if p in own]


def _read(response: dict[str, Any]) -> ToolResult:
    (key, content), *_ = response["response"].items()
    return ToolResult(
        call_id=original(response["id"]),
        name=original(response["name"]),
        content=content,
        is_error=key == "error",
    )


@given(st.lists(texts.map(lambda text: f"x{text}"), min_size=1, max_size=7))
def test_each_request_extends_the_one_before_it(spoken: list[str]) -> None:
    messages = [
        assistant(said(text), CALL) if number % 2 else user(said(text), *[RESULT][: bool(number)])
        for number, text in enumerate(spoken)
    ]
    earlier: list[Any] = []
    for end in range(1, len(messages) + 1, 2):
        body = wire(request(*messages[:end]))
        parameters, split = DIALECT.split(body)
        assert parameters.keys() == body.keys() - {"contents"}
        assert split[: len(earlier)] == earlier
        assert len(split) > len(earlier)
        assert DIALECT.split({**parameters, "contents": [*split]}) == (parameters, split)
        earlier = split


calls = st.builds(
    lambda args, given_id: {"functionCall": {"name": "shell", "args": args} | given_id},
    objects,
    st.sampled_from([{}, {"id": "given"}]),
)
signed = st.sampled_from([{}, {"thoughtSignature": "c2ln"}])
answer_parts = st.lists(
    st.builds(
        lambda part, beside: part | beside,
        st.one_of(
            st.text(max_size=9).map(lambda text: {"text": text}),
            st.text(max_size=9).map(lambda text: {"text": text, "thought": True}),
            calls,
            st.just({"executableCode": {"code": "1"}}),
        ),
        signed,
    ),
    max_size=5,
)


@given(answer_parts, st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY"]), st.booleans())
def test_a_streamed_answer_is_the_same_turn(parts: list[Any], finish: str, thrifty: bool) -> None:
    body = answer(*parts, finish=finish, responseId="r", modelVersion="v")
    body["usageMetadata"] = {"promptTokenCount": 3, "candidatesTokenCount": 4}
    if thrifty:
        del body["candidates"][0]["content"]["role"]
    assembler = DIALECT.assembler()
    deltas = [delta for piece in pieces(body) for delta in assembler.add(piece)]
    turn = DIALECT.from_response(assembler.body())
    assert turn == DIALECT.from_response(body)
    message = Message(role="assistant", content=turn.content)
    assert "".join(d.text for d in deltas if d.kind == "text") == message.text
    written = [(d.call_id, d.text) for d in deltas if d.kind == "call_arguments"]
    assert written == [(call.id, call.arguments) for call in message.tool_calls]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}, RateLimitedError),
        ({"code": 503, "message": "busy", "status": "UNAVAILABLE"}, OverloadedError),
        ("no", ModelCallError),
    ],
)
def test_an_error_within_an_answer_is_told_apart(
    error: Any, expected: type[ModelCallError]
) -> None:
    for read in (DIALECT.assembler().add, DIALECT.from_response):
        with pytest.raises(ModelCallError) as caught:
            read({"error": error})
        assert type(caught.value) is expected


@given(answer_parts)
def test_an_answer_goes_back_as_it_was_read(parts: list[Any]) -> None:
    read = DIALECT.from_response(answer(*parts))
    contents = wire(request(user(said("x")), assistant(*read.content), user(said("y"))))["contents"]
    sent = contents[1]["parts"] if len(contents) == 3 else []
    assert DIALECT.from_response(answer(*sent)).content == read.content


@given(answer_parts, st.integers(0, 20))
def test_a_stream_that_is_cut_is_malformed(parts: list[Any], kept: int) -> None:
    assembler = DIALECT.assembler()
    events = list(pieces(answer(*parts)))
    for event in events[: min(kept, len(events) - 1)]:
        assembler.add(event)
    with pytest.raises(MalformedAnswerError):
        assembler.body()


def test_a_blocked_prompt_is_a_refusal_when_streamed_too() -> None:
    body = {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "No."}}
    assembler = DIALECT.assembler()
    assert [delta for piece in pieces(body) for delta in assembler.add(piece)] == []
    assert DIALECT.from_response(assembler.body()) == ModelTurn(
        content=(said("No."),), stop=StopReason.REFUSAL
    )


@pytest.mark.parametrize("model", ["gemini-3-flash-preview", "models/gemini-3.5-pro", "gemini-10"])
def test_calls_of_another_vendors_model_are_marked_for_those_that_want_signatures(
    model: str,
) -> None:
    foreign = assistant(CALL, CALL.model_copy(update={"id": "b"}))
    results = user(*(ToolResult(call_id=id_, name="shell", content="ok") for id_ in ("a", "b")))
    body = wire(replace(request(user(said("Go.")), foreign, results), model=model))
    check(on_the_wire(body))
    first, second = body["contents"][1]["parts"]
    assert first["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in second


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemma-3-27b-it", "tunedModels/x"])
def test_other_models_are_sent_no_mark(model: str) -> None:
    results = user(ToolResult(call_id="a", name="shell", content="ok"))
    body = wire(replace(request(user(said("Go.")), assistant(CALL), results), model=model))
    assert "thoughtSignature" not in body["contents"][1]["parts"][0]


def test_a_call_that_is_signed_keeps_its_signature() -> None:
    signature = VendorBlock(dialect=NAME, data={"next_part": {"thoughtSignature": "c2ln"}})
    results = user(ToolResult(call_id="a", name="shell", content="ok"))
    asked = request(user(said("Go.")), assistant(signature, CALL), results)
    body = wire(replace(asked, model="gemini-3-pro"))
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "c2ln"
