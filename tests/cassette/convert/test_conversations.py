from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import requests

import harness.cassette
from harness.cassette.convert.conversations import KNOWN, read_conversations
from harness.cassette.convert.exchange import Found
from harness.cassette.convert.exporting import to_messages
from harness.cassette.convert.writing import targets, write
from harness.cassette.file.tape import ToolKey
from harness.cassette.file.view import read
from harness.cassette.format import ToolLine
from harness.cassette.response.body import answering_model
from harness.errors import BadInputError, ReplayMissError
from harness.redaction import Redactor
from tests.cassette.convert.samples import (
    MESSAGES,
    MODEL,
    PLAIN,
    answers,
    ask,
    atif,
    call_log,
    episodes,
    in_file,
    replay,
)

NO_SECRETS = Redactor({})

SAMPLES: dict[str, tuple[str, object, list[dict[str, Any]]]] = {
    "messages": ("talk.json", {"messages": MESSAGES, "meta": {"model": MODEL}}, MESSAGES),
    "lines of messages": (
        "talk.jsonl",
        json.dumps({"messages": MESSAGES, "model": MODEL}, ensure_ascii=False) + "\n",
        MESSAGES,
    ),
    "episodes": ("trajectory.json", episodes(), PLAIN),
    "call log": ("llm_trajectory.jsonl", call_log(), PLAIN),
    "ATIF": ("trajectory.json", atif(), MESSAGES),
}


def imported(path: Path, out: Path) -> list[Path]:
    chosen = targets(read_conversations(path, NO_SECRETS), out)
    for target in chosen:
        write(target, match="position", redactor=NO_SECRETS)
    return [target.path for target in chosen]


def only(path: Path) -> Found:
    [found] = read_conversations(path, NO_SECRETS)
    return found


def exported(cassette: Path) -> list[dict[str, Any]]:
    text, _ = to_messages(read(cassette))
    return [json.loads(line) for line in text.split("\n") if line]


def same(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the difference between no text and an empty one beside calls."""
    return [{k: v for k, v in message.items() if v or k != "content"} for message in messages]


@pytest.mark.parametrize("form", SAMPLES)
def test_a_conversation_replays_turn_for_turn_and_comes_out_again(form: str, tmp_path: Path):
    name, content, messages = SAMPLES[form]
    source = in_file(tmp_path / "task-1" / name, content)
    [cassette] = imported(source, tmp_path / "out")
    with harness.cassette.use(cassette) as session:
        assert same(replay(messages)) == same(answers(messages))
    differences = session.request_differences
    assert [one.cause for one in differences if one.cause.startswith("message")] == []
    [back] = exported(cassette)
    assert same(back["messages"]) == same(messages)
    # And what came out goes in again, to the same.
    [again] = imported(in_file(tmp_path / "again.jsonl", json.dumps(back)), tmp_path / "again")
    assert exported(again)[0]["messages"] == back["messages"]


def test_plain_messages_come_out_byte_for_byte(tmp_path: Path):
    source = in_file(tmp_path / "a.json", {"task": "t", "messages": MESSAGES, "meta": {"r": 1}})
    [cassette] = imported(source, tmp_path / "out")
    [back] = exported(cassette)
    assert json.dumps(back["messages"]) == json.dumps(MESSAGES)
    assert (back["meta"]["task"], back["meta"]["r"]) == ("t", 1)


def test_whatever_is_asked_the_next_answer_comes_and_the_difference_is_told(tmp_path: Path):
    [cassette] = imported(in_file(tmp_path / "a.json", {"messages": PLAIN}), tmp_path / "out")
    with harness.cassette.use(cassette) as session:
        assert ask([{"role": "user", "content": "something else"}])["content"] == "two"
        assert ask([{"role": "user", "content": "and on"}])["content"] == "four"
    differences = session.request_differences
    assert {one.call for one in differences} == {1, 2}
    assert "something else" in differences[0].difference


def test_a_call_after_the_last_is_missed(tmp_path: Path):
    [cassette] = imported(in_file(tmp_path / "a.json", {"messages": PLAIN}), tmp_path / "out")

    @harness.cassette.use(cassette)
    def agent() -> None:
        for _ in range(3):
            with contextlib.suppress(openai.APIStatusError):
                ask(PLAIN[:1])

    with pytest.raises(ReplayMissError, match="call 3"):
        agent()


def test_what_tools_gave_is_kept_with_the_call_that_asked(tmp_path: Path):
    [cassette] = imported(in_file(tmp_path / "t.json", atif()), tmp_path / "out")
    view = read(cassette)
    [tool] = view.tools
    assert isinstance(tool, ToolLine)
    assert (tool.name, tool.arguments, tool.position) == ("count", {"file": "notes.txt"}, 0)
    assert tool.result.content == "12 lines"
    first = next(iter(view.interactions.values())).line
    assert tool.interaction == first.id
    assert first.recorded_at.isoformat() == "2026-01-02T03:04:05+00:00"
    assert [answering_model(entry.line.response) for entry in view.interactions.values()] == [
        MODEL,
        "other",
        MODEL,
    ]
    body = first.response.body
    assert isinstance(body, dict)
    assert body["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 5,
        "total_tokens": 25,
        "prompt_tokens_details": {"cached_tokens": 10},
    }


def test_a_call_gets_the_recorded_observation_whatever_the_tool_is_today(tmp_path: Path):
    [cassette] = imported(in_file(tmp_path / "t.json", atif()), tmp_path / "out")
    with harness.cassette.use(cassette) as session:
        ask(MESSAGES[:2])
        key = ToolKey(session.last, 0, "count", {"file": "other.txt"}, "today's schema", 60.0)
        result = session.tool_result(key)
    assert result is not None
    assert (result.content, result.status) == ("12 lines", "ok")
    assert "tool count" in [one.cause for one in session.request_differences]


@pytest.mark.parametrize("minor", range(9))
def test_every_version_of_atif_that_there_is_is_read(minor: int, tmp_path: Path):
    found = only(in_file(tmp_path / "t.json", atif(f"ATIF-v1.{minor}")))
    assert len(found.exchanges) == 3


@pytest.mark.parametrize("version", ["ATIF-v1.9", "ATIF-v2.0", "ATIF-v1.10", "ATIF"])
def test_a_version_of_atif_that_nobody_knows_is_refused(version: str, tmp_path: Path):
    with pytest.raises(BadInputError, match=f"'{version}' is not known here.*ATIF-v1.8"):
        only(in_file(tmp_path / "t.json", atif(version)))


def test_steps_for_which_no_model_was_called_are_no_turns(tmp_path: Path):
    trajectory = atif()
    trajectory["steps"][2]["is_copied_context"] = True
    trajectory["steps"][5]["llm_call_count"] = 0
    trajectory["steps"][3]["llm_call_count"] = 2
    trajectory["subagent_trajectories"] = [{"trajectory_id": "x"}]
    found = only(in_file(tmp_path / "t.json", trajectory))
    [exchange] = found.exchanges
    assert [message["role"] for message in exchange.request.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert found.left_out == (
        "steps that stand for several model calls, imported as one call each: 1",
        "subagents' own trajectories: 1",
        "messages after the last answer: 2",
    )


def test_one_screen_for_several_calls_is_the_last_ones_and_begins_the_next_turn(tmp_path: Path):
    trajectory = atif()
    step = trajectory["steps"][2]
    step["tool_calls"] = [step["tool_calls"][0], step["tool_calls"][0] | {"tool_call_id": "b"}]
    step["observation"] = {"results": [{"content": "$ ls"}]}
    first, second, _ = only(in_file(tmp_path / "t.json", trajectory)).exchanges
    assert [given.content for given in first.observations] == ["", "$ ls"]
    assert second.request.messages[-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "$ ls"}],
    }


def test_a_result_without_a_name_belongs_to_the_only_call(tmp_path: Path):
    trajectory = atif("ATIF-v1.2")
    trajectory["steps"][2]["observation"] = {"results": [{"content": "12 lines"}]}
    first = only(in_file(tmp_path / "t.json", trajectory)).exchanges[0]
    assert [given.content for given in first.observations] == ["12 lines"]


def test_a_call_log_keeps_the_vendors_own_format(tmp_path: Path):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    answer = {"type": "message", "content": [{"type": "text", "text": "ho"}], "model": "m"}
    line = {"request": {"body": body}, "response": {"status_code": 200, "body": answer}}
    found = only(in_file(tmp_path / "llm_trajectory.jsonl", json.dumps(line)))
    [exchange] = found.exchanges
    assert exchange.request.endpoint == "anthropic-messages"
    assert exchange.response.body == answer


THINKING = {"type": "thinking", "thinking": "hm", "signature": "sig"}
USE = {"type": "tool_use", "id": "tool_1", "name": "count", "input": {"file": "a ✓"}}


def test_a_client_that_streams_gets_a_stream(tmp_path: Path):
    [cassette] = imported(in_file(tmp_path / "t.json", atif()), tmp_path / "out")
    asked: Any = MESSAGES[:2]
    with openai.OpenAI(api_key="unused", base_url="http://127.0.0.1:9/v1") as client:
        with (
            harness.cassette.use(cassette) as session,
            client.chat.completions.stream(model=MODEL, messages=asked) as stream,
        ):
            first = stream.get_final_completion()
        with harness.cassette.use(cassette):
            whole = client.chat.completions.create(model=MODEL, messages=asked)
    [call] = first.choices[0].message.tool_calls or []
    assert call.to_dict()["id"] == "call_1"
    assert json.loads(call.function.arguments) == {"file": "notes.txt"}
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.usage == whole.usage
    assert session.served == 1


def test_a_client_of_anthropics_that_streams_gets_a_stream(tmp_path: Path):
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    answer = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL,
        "content": [THINKING, {"type": "text", "text": "ho ✓"}, USE],
        "stop_reason": "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }  # fmt: skip
    line = {"request": {"body": body}, "response": {"status_code": 200, "body": answer}}
    [cassette] = imported(in_file(tmp_path / "calls.jsonl", json.dumps(line)), tmp_path / "out")
    asked: Any = body
    with (
        anthropic.Anthropic(api_key="unused", base_url="http://127.0.0.1:9") as client,
        harness.cassette.use(cassette),
        client.messages.stream(**asked) as stream,
    ):
        assert "".join(stream.text_stream) == "ho ✓"
        final = stream.get_final_message().to_dict()
    assert final | {"stop_details": None} == answer | {"stop_details": None}


@pytest.mark.parametrize("path", ["messages", "responses"])
def test_a_client_of_another_format_gets_no_answer_but_a_miss(path: str, tmp_path: Path):
    [cassette] = imported(in_file(tmp_path / "a.json", {"messages": PLAIN}), tmp_path / "out")
    body = {"model": MODEL, "max_tokens": 9, "messages": PLAIN[:1], "input": "x"}
    with (
        pytest.raises(ReplayMissError, match="recorded: openai-chat, not"),
        harness.cassette.use(cassette) as session,
    ):
        requests.post(f"http://127.0.0.1:9/v1/{path}", json=body, timeout=9)
    assert session.served == 0


def test_a_stream_is_no_answer_where_nobody_knows_how_it_would_look(tmp_path: Path):
    body = {"model": MODEL, "input": "hi"}
    answer = {"object": "response", "output": []}
    line = {"request": {"body": body}, "response": {"status_code": 200, "body": answer}}
    [cassette] = imported(in_file(tmp_path / "calls.jsonl", json.dumps(line)), tmp_path / "out")
    streaming = {**body, "stream": True}
    with (
        pytest.raises(ReplayMissError, match="recorded: openai-responses without streaming"),
        harness.cassette.use(cassette),
    ):
        requests.post("http://127.0.0.1:9/v1/responses", json=streaming, timeout=9)


def test_failed_calls_that_were_tried_again_are_left_out_and_told(tmp_path: Path):
    found = only(in_file(tmp_path / "run-7" / "llm_trajectory.jsonl", call_log()))
    assert found.name == "run-7"
    assert [exchange.latency_s for exchange in found.exchanges] == [1.5, 1.5]
    assert found.left_out == ("failed calls that were tried again: 1",)
    assert found.meta == {"purpose": "agent"}


def test_lines_of_several_conversations_become_repeats(tmp_path: Path):
    lines = "".join(json.dumps({"messages": PLAIN, "task": "t/../x y"}) + "\n" for _ in range(2))
    out = tmp_path / "out"
    made = imported(in_file(tmp_path / "a.jsonl", lines), out)
    assert made == [out / "t" / "x-y" / "0.jsonl", out / "t" / "x-y" / "1.jsonl"]
    assert [read(path).header.repeat for path in made] == [0, 1]


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "..", "a\nb", "~/x", ""])
def test_a_name_out_of_a_file_leads_nowhere_else(name: str, tmp_path: Path):
    out = tmp_path / "out"
    source = in_file(tmp_path / "a.json", {"messages": PLAIN, "task": name})
    [made] = imported(source, out)
    assert out in made.resolve().parents


def test_what_is_there_already_is_not_overwritten(tmp_path: Path):
    source = in_file(tmp_path / "a.json", {"messages": PLAIN})
    [made] = imported(source, tmp_path / "out")
    before = made.read_bytes()
    with pytest.raises(BadInputError, match="is there already"):
        imported(source, tmp_path / "out")
    assert made.read_bytes() == before


def test_secrets_are_in_no_byte_of_what_is_made(tmp_path: Path):
    key, known = "sk-proj-abcdefghij0123456789ABCDEF", "a plain pass phrase"
    call = {**MESSAGES[2]["tool_calls"][0]}
    call["function"] = {"name": "run", "arguments": json.dumps({"env": key})}
    messages = [
        {"role": "user", "content": f"use {key}"},
        {"role": "assistant", "content": known, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": f"KEY={key} {known}"},
        {"role": "assistant", "content": f"it is {key}"},
    ]
    source = in_file(tmp_path / "a.json", {"messages": messages, "meta": {"note": known}})
    redactor = Redactor({"X_API_KEY": known})
    [target] = targets(read_conversations(source, redactor), tmp_path / "out")
    write(target, match="position", redactor=redactor)
    data = target.path.read_text()
    assert len(read(target.path).tools) == 1
    assert key not in data
    assert known not in data


def edited(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    trajectory = atif()
    change(trajectory)
    return trajectory


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("hello", "not JSON"),
        ('{"messages": [\n', "not JSON"),
        ('{"messages": []}\n{"messages"\n', "a.json:2: not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ({"messages": json.loads("[" * 300 + "]" * 300)}, "not JSON: more than 150 levels"),
        ({"steps": []}, "no known format; known are: ATIF"),
        ([1, 2], "no known format"),
        ({"messages": "x"}, "messages: expected a list"),
        ({"messages": [1]}, "messages: each must be an object"),
        ({"messages": [{"role": "user", "content": "x"}]}, "no message is an answer"),
        ({"messages": [{"role": "robot", "content": "x"}]}, r"messages\[0\].role: 'robot'"),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]},
            r"messages\[0\].content: expected the answer's text",
        ),
        (
            {"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}]},
            r"messages\[0\].tool_calls: expected a list of calls",
        ),
        ([{"episode": 1, "prompt": "a", "response": 5}], "0.response: Input should be"),
        (
            [{"episode": number, "prompt": "a", "response": "b"} for number in (0, 2)],
            "after episode 0 comes episode 2",
        ),
        (
            [{"episode": number, "prompt": "a", "response": "b"} for number in (1, 2, 1)],
            "after episode 2 comes episode 1",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "x"}]}\n\n{"messages": 5}\n',
            "line 3: messages: expected a list",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "x"}]}\n\n{"message": []}\n',
            "line 3: expected an object with 'messages', as on line 1",
        ),
        (
            '{"request": 1, "response": 2}\n{"request": 1}\n',
            "line 2: expected an object with 'request' and 'response'",
        ),
        ('{"messages": [], "meta": {"score": NaN}}', "not JSON: NaN is no number in JSON"),
        ('{"messages": []}\n{"score": -Infinity}', "a.json:2: not JSON: -Infinity is no number"),
        (edited(lambda t: t.pop("agent")), "agent: Field required"),
        (edited(lambda t: t.update(steps=[])), "steps: List should have at least 1"),
        (edited(lambda t: t["steps"][0].update(source="tool")), "steps.0.source: Input should"),
        ('{"request": 1, "response": {}}', "line 1: 'request' and 'response' must be objects"),
        ('{"request": {"body": {"a": 1}}, "response": {}}', "line 1: no request to a model"),
    ],
)
def test_a_file_that_is_no_conversation_is_an_error_with_its_name(
    content: object, problem: str, tmp_path: Path
):
    path = in_file(tmp_path / "a.json", content)
    with pytest.raises(BadInputError, match=problem) as raised:
        read_conversations(path, NO_SECRETS)
    assert str(path) in str(raised.value)
    assert len(KNOWN) == 4


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path):
    with pytest.raises(BadInputError, match="no such file; it holds"):
        read_conversations(tmp_path / "none.json", NO_SECRETS)
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadInputError, match="not UTF-8 text"):
        read_conversations(tmp_path / "b.json", NO_SECRETS)
