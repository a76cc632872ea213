from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness.cassette
from harness.cassette.convert.exporting import to_messages, to_vcr, write_export
from harness.cassette.convert.spelling import sent_request
from harness.cassette.file.view import read
from harness.cassette.request.canonical import canonical_request
from harness.errors import BadInputError, InfrastructureError
from tests.cassette.cells import ask, open_store
from tests.cassette.convert import agents
from tests.loopback import on_loopback

CALL = {"id": "call_1", "type": "function", "function": {"name": "count", "arguments": "{}"}}
BLOCK = {"type": "tool_use", "id": "tool_1", "name": "count", "input": {"file": "a"}}


def completion(message: dict[str, Any]) -> dict[str, Any]:
    whole = {"role": "assistant", "refusal": None, "annotations": [], **message}
    choice = {"index": 0, "message": whole, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "choices": [choice]}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "tiny",
        "content": list(content), "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }  # fmt: skip


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": None}


def chunk(text: str) -> str:
    choice: dict[str, Any] = {"index": 0, "delta": {"content": text}}
    if not text:
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n"


OUTPUT = {"type": "output_text", "text": "twelve again", "annotations": []}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "tiny",
    "output": [{"type": "message", "id": "m", "role": "assistant", "content": [OUTPUT]}],
}
SCRIPT: list[bytes] = [
    json.dumps(completion({"content": None, "tool_calls": [CALL]})).encode(),
    json.dumps(completion({"content": "twelve ✓"})).encode(),
    (chunk("first ") + chunk("stream") + chunk("") + "data: [DONE]\n\n").encode(),
    (chunk("second") + chunk("") + "data: [DONE]\n\n").encode(),
    json.dumps(RESPONSE).encode(),
    json.dumps(message(text_block("let me count"), BLOCK)).encode(),
    json.dumps(message(text_block("a dozen ✓"))).encode(),
    b"page",
    b"form",
    b"\xff\x00binary",
]
"""What the server answers, in the order in which the agents ask."""


@contextmanager
def scripted() -> Iterator[str]:
    """A server on loopback that answers what the script says."""
    left = list(SCRIPT)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = left.pop(0)
            kind = {b"d": "text/event-stream", b"{": "application/json"}.get(body[:1], "text/plain")
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Tests are quiet."""

    with on_loopback(Handler) as url:
        yield url


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[str]]:
    """A cassette of all agents, the address of the pages in it, and what was said."""
    path = tmp_path_factory.mktemp("recorded") / "0.jsonl"
    with scripted() as url, harness.cassette.use(path, record_mode="once"):
        said = agents.openai_agent(f"{url}/v1") + agents.anthropic_agent(url) + agents.pages(url)
    return path, url, said


def test_stock_vcrpy_replays_what_was_exported_without_us_and_without_a_network(
    recorded: tuple[Path, str, list[str]], tmp_path: Path
):
    path, url, said = recorded
    exported = tmp_path / "all.yaml"
    write_export(to_vcr(read(path)), exported)
    done = subprocess.run(
        [sys.executable, agents.__file__, str(exported), url],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"said": said, "all": True}
    assert done.stderr.strip() == "[]"


def test_a_base_url_stands_in_every_model_call(recorded: tuple[Path, str, list[str]]):
    data = yaml.safe_load(to_vcr(read(recorded[0]), base_url="http://gate/x/"))
    uris = [pair["request"]["uri"] for pair in data["interactions"]]
    assert uris[0] == "http://gate/x/chat/completions"
    assert "http://gate/x/v1/messages" in uris
    assert uris[-1] == f"{recorded[1]}/json"


def test_each_conversation_comes_out_to_its_end(recorded: tuple[Path, str, list[str]]):
    text, count = to_messages(read(recorded[0]))
    found = [json.loads(line) for line in text.split("\n") if line]
    assert count == len(found)
    openai, first, second, responses, anthropic = found
    assert openai["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Count ✓"},
        {"role": "assistant", "content": None, "annotations": [], "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "12"},
        {"role": "assistant", "annotations": [], "content": "twelve ✓"},
    ]
    assert [one["messages"][-1]["content"] for one in (first, second)] == ["first stream", "second"]
    assert responses["messages"][0] == {"role": "user", "content": "Count again."}
    assert responses["messages"][1]["id"] == "m"
    assert [turn["role"] for turn in anthropic["messages"]] == ["user", "assistant"] * 2
    assert anthropic["messages"][1]["content"][1] == BLOCK
    assert anthropic["messages"][3]["content"] == "a dozen ✓"
    assert anthropic["meta"]["endpoint"] == "anthropic-messages"
    assert anthropic["meta"]["parameters"]["system"] == [{"type": "text", "text": "Be brief."}]


def test_one_trials_answers_to_a_request_stay_together(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    for variant in ("a", "b"):
        with open_store(path, "all") as store:
            session = store.session(variant)
            ask(session, "go", live=f"{variant} 0")
            session.finish()
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        ask(session, "go", live="unused")
        ask(session, "go", live="b 1")
        session.finish()
    view = read(path)
    data = yaml.safe_load(to_vcr(view))
    answers = [json.loads(pair["response"]["body"]["string"]) for pair in data["interactions"]]
    assert [answer["text"] for answer in answers] == ["a 0", "b 0", "b 1"]
    assert to_messages(view) == ("", 0)  # these answers are no chat completions


def test_an_export_overwrites_nothing_and_leaves_no_half_file(tmp_path: Path):
    path = tmp_path / "new" / "a.yaml"
    write_export("one", path)
    with pytest.raises(BadInputError, match="is there already"):
        write_export("two", path)
    assert path.read_text() == "one"
    with pytest.raises(InfrastructureError, match="cannot be written"):
        write_export("three", path / "b.yaml")
    assert [file.name for file in path.parent.iterdir()] == ["a.yaml"]


def test_a_call_of_a_deployment_goes_out_to_it():
    url = "https://a/openai/deployments/one/chat/completions"
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    asked = canonical_request("POST", url, body)
    sent = sent_request(
        asked.endpoint, asked.parameters, [*asked.messages], base_url="https://a/openai"
    )
    assert sent.url == url
    assert json.loads(sent.body) == json.loads(body)
