"""Tool calls as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loop.text_protocols.json_protocol import JsonProtocol
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Message, StopReason, Text, ToolCall, ToolResult, VendorBlock
from harness.schema.record import Json, JsonObject
from harness.values import ParsedText
from tests.loop.support import FunctionTool, answered, call, output, returns, run

LS = '{"name": "shell", "arguments": {"command": "ls"}}'
CAT = '{"name": "shell", "arguments": {"command": "cat"}}'
RAW_LS, RAW_CAT = '{"command": "ls"}', '{"command": "cat"}'
PROTOCOL = JsonProtocol()


@pytest.mark.parametrize(
    ("text", "around", "calls"),
    [
        (LS, "", [RAW_LS]),
        (f"  \n{LS}\n", "", [RAW_LS]),
        (f"```json\n{LS}\n```", "", [RAW_LS]),
        (f"```\n{LS}\n```", "", [RAW_LS]),
        (f"I look first.\n\n```json\n{LS}\n```", "I look first.", [RAW_LS]),
        (f"I look. {LS} Then I wait.", "I look.  Then I wait.", [RAW_LS]),
        (f"[{LS}, {CAT}]", "", [RAW_LS, RAW_CAT]),
        (f"```json\n[{LS},\n {CAT}]\n```", "", [RAW_LS, RAW_CAT]),
        (f"{LS}\n{CAT}", "", [RAW_LS, RAW_CAT]),
        (f"{LS} and {CAT}", "and", [RAW_LS, RAW_CAT]),
        ('{\n  "arguments": {"command": "ls"},\n  "name": "shell"\n}', "", [RAW_LS]),
        ('{"name": "shell", "arguments": {}}', "", ["{}"]),
        ('{"name": "shell", "arguments": "{\\"command\\": \\"ls\\"}"}', "", [RAW_LS]),
        ('{"name": "shell", "arguments": {"command": "ä\n"}}', "", ['{"command": "ä\\n"}']),
        (f'Brackets [1] and {{"a": 1}} then {LS}', 'Brackets [1] and {"a": 1} then', [RAW_LS]),
    ],
)
def test_calls_are_found_in_the_text_and_the_rest_is_kept(
    text: str, around: str, calls: list[str]
) -> None:
    assert PROTOCOL.parse(text) == ParsedText(around, tuple(("shell", raw) for raw in calls))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The answer is 42.",
        '{"result": 42}',
        "[]",
        "[1, 2]",
        '{"name": "Ada"}',
        '{"arguments": {"command": "ls"}}',
        '{"name": 5, "arguments": {}}',
        '{"name": "Ada", "age": 36}',
        '{"id": 1, "name": "shell", "arguments": {}}',
        "{" * 5000,
        "[" * 100_000,
        '{"a":' * 20_000,
    ],
)
def test_what_is_no_call_is_text(text: str) -> None:
    assert PROTOCOL.parse(text) == ParsedText(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "shell", "arguments": {"command": "ls"}',
        '{"name": "shell", "arguments": {"command": "ls',
        '{"name": "shell", "arguments": {"command": "say "hi""}}',
        '{"name": "shell", "arguments": {\'command\': \'ls\'}}',
        '{"name": "shell", "arguments": }',
        '{"name": "shell", "arguments": {"command": "ls"}, "id": 7}',
        '{"call": {"name": "shell", "arguments": {"command": "ls"}}}',
        '{"name": "shell", "arguments": [1]}',
        '{"name": "shell", "arguments": "ls"}',
        '{"name": "shell", "arguments": null}',
    ],
)
def test_what_looks_like_a_call_but_is_none_is_a_malformed_call(text: str) -> None:
    ran: list[JsonObject] = []

    def shell(arguments: JsonObject) -> Json:
        ran.append(arguments)
        return "ran"

    trajectory, _ = run(
        [turn(f"I look. {text}"), turn("done")],
        tools=[FunctionTool("shell", shell)],
        text_protocol="json",
    )
    assert ran == []
    assistant, results = trajectory.messages[1:3]
    assert [block.name for block in assistant.tool_calls] == ["shell"]
    assert assistant.text.startswith("I look.")
    assert results.tool_results[0].content.startswith("Malformed arguments: ")


def test_a_malformed_call_beside_a_good_one_is_answered_too() -> None:
    broken = '{"name": "shell", "arguments": {"command": "ls"}'
    parsed = PROTOCOL.parse(f"First {broken}\nthen {CAT}\nlast {broken}")
    assert parsed.text.startswith("First")
    assert [raw == RAW_CAT for _, raw in parsed.calls] == [False, True, False]
    assert all(name == "shell" for name, _ in parsed.calls)


def test_the_model_reads_instructions_and_is_offered_no_native_tools() -> None:
    shell = FunctionTool("shell", lambda _: "", {"type": "object", "properties": {"command": {}}})
    _, provider = run(
        [turn("done")],
        tools=[shell],
        output=output(),
        system="Be brief.",
        text_protocol="json",
        text_only="accept",
        max_attempts=1,
    )
    request = provider.requests[0]
    assert request.tools == ()
    assert request.system is not None
    assert request.system.startswith("Be brief.\n\n")
    for word in ("shell", "command", "output", "result", '"name"', '"arguments"'):
        assert word in request.system
    _, provider = run([turn(LS)], text_protocol="json")
    assert provider.requests[0].system is None, "no tools, no instructions"


def test_without_tools_nothing_in_a_text_is_a_call() -> None:
    trajectory, _ = run([turn(LS)], text_protocol="json")
    assert (trajectory.termination_reason, trajectory.final_text) == (Reason.COMPLETED, LS)


def test_what_the_model_wrote_goes_back_word_for_word_and_results_as_one_user_text() -> None:
    written = f"Two at once:\n```json\n[{LS},{CAT}]\n``` wait"

    def shell(arguments: JsonObject) -> Json:
        if arguments["command"] == "cat":
            raise RuntimeError("no such file")
        return "a.txt"

    trajectory, provider = run(
        [turn(written), turn("done")],
        tools=[FunctionTool("shell", shell)],
        text_protocol="json",
    )
    answered(trajectory)
    assistant, user = provider.requests[1].messages[1:]
    assert assistant == Message(role="assistant", content=(Text(text=written),))
    assert user.role == "user"
    (block,) = user.content
    assert isinstance(block, Text)
    first, second = block.text.split("\n\n")
    assert first == "Result of call_1 (shell):\na.txt"
    assert second == "Error from call_2 (shell):\nRuntimeError: no such file"


def test_ids_are_unique_over_the_run() -> None:
    trajectory, _ = run(
        [turn(f"{LS}{LS}"), turn(LS), turn("done")],
        tools=[returns("shell", "ok")],
        text_protocol="json",
    )
    ids = [block.id for message in trajectory.messages for block in message.tool_calls]
    assert ids == ["call_1", "call_2", "call_3"]


def test_output_and_submit_work_as_tools_do() -> None:
    draft = '{"name": "output", "arguments": {"result": "x"}}'
    trajectory, provider = run(
        [turn(draft), turn('{"name": "submit", "arguments": {}}')],
        output=output(handler=lambda _: "Looks fine."),
        reflection=True,
        text_protocol="json",
    )
    assert trajectory.output == {"result": "x"}
    shown = provider.requests[1].messages[-1].text
    assert shown == "Result of call_1 (output):\nLooks fine."


def test_text_without_a_call_is_a_text_only_turn() -> None:
    trajectory, provider = run(
        [turn("I am thinking."), turn('{"name": "output", "arguments": {"result": "x"}}')],
        output=output(),
        text_protocol="json",
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert provider.requests[1].messages[1].text == "I am thinking."


def test_dropped_calls_do_not_go_back() -> None:
    written = f"{LS}\n{CAT}"
    trajectory, provider = run(
        [turn(written), turn("done")],
        tools=[returns("shell", "ok")],
        text_protocol="json",
        max_tool_calls_per_turn=1,
        overflow="drop",
    )
    assert provider.requests[1].messages[1].text == LS
    assert trajectory.tool_calls_made == 1


def test_a_cut_text_runs_no_call_of_it() -> None:
    cut = turn(f"So: {LS}", stop=StopReason.MAX_TOKENS)
    trajectory, provider = run(
        [cut, turn("done")], tools=[returns("shell", "ok")], text_protocol="json"
    )
    assert trajectory.tools_executed == ()
    assert provider.requests[1].messages[1].text == "So:"


def test_calls_of_an_earlier_conversation_are_written_out() -> None:
    mine = [
        Message(role="user", content=(Text(text="Look."),)),
        Message(
            role="assistant",
            content=(
                Text(text="I look."),
                ToolCall(id="c", name="shell", arguments=RAW_LS),
                ToolCall(id="d", name="time", arguments=""),
            ),
        ),
        Message(
            role="user",
            content=(
                ToolResult(call_id="c", name="shell", content="a.txt"),
                ToolResult(call_id="d", name="time", content="noon"),
                Text(text="Go on."),
            ),
        ),
    ]
    _, provider = run([turn("done")], messages=mine, text_protocol="json")
    assert [message.text for message in provider.requests[0].messages] == [
        "Look.",
        f'I look.\n\n{LS}\n\n{{"name": "time", "arguments": {{}}}}',
        "Result of c (shell):\na.txt\n\nResult of d (time):\nnoon\n\nGo on.",
    ]


def test_blocks_of_a_vendor_stay_in_place() -> None:
    thinking = VendorBlock(dialect="anthropic", data={"type": "thinking"})
    spoken = turn(LS).model_copy(update={"content": (thinking, Text(text=LS))})
    trajectory, _ = run(
        [spoken, turn("done")], tools=[returns("shell", "ok")], text_protocol="json"
    )
    assert trajectory.messages[1].content[0] == thinking


def test_half_a_surrogate_pair_never_reaches_the_log() -> None:
    name, argument = '"sh\\ud800ell"', '"\\udc00"'
    text = f'{{"name": {name}, "arguments": {{"command": {argument}}}}}'
    trajectory, _ = run([turn(text), turn("done")], tools=[returns("a", "")], text_protocol="json")
    trajectory.model_dump_json()
    assert trajectory.messages[1].tool_calls[0].arguments == '{"command": "?"}'


@given(st.text(alphabet='{}[]",:name argumts1\n`'))
def test_no_text_breaks_the_reader(text: str) -> None:
    parsed = PROTOCOL.parse(text)
    if parsed.calls:
        assert all(f'"{name}"' in text for name, _ in parsed.calls)
    else:
        assert parsed.text == text


def test_native_calls_need_no_protocol() -> None:
    _, provider = run(
        [turn(calls=[call("1", "shell")]), turn("done")], tools=[returns("shell", "ok")]
    )
    assert [spec.name for spec in provider.requests[0].tools] == ["shell"]
    assert provider.requests[1].messages[1].tool_calls[0].id == "1"
