"""A model call is found by the bytes in which it was sent, and otherwise by what they mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness.cassette import use
from harness.cassette.care.repair import repair
from harness.cassette.file.view import read
from harness.cassette.format import InteractionLine
from harness.errors import ReplayMissError
from harness.schema.recording import RecordingRules
from tests.cassette.loopback import upstream

BODY: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "go"}]}


def post(port: int, content: bytes, path: str = "/v1/chat/completions") -> str:
    answer = httpx2.post(f"http://127.0.0.1:{port}{path}", content=content)
    return str(answer.json()["choices"][0]["message"]["content"])


def recorded(path: Path, body: dict[str, Any], rules: RecordingRules | None = None) -> str:
    with upstream() as server, use(path, "new_episodes", rules=rules):
        return post(server.port, json.dumps(body).encode())


def lines(path: Path) -> list[InteractionLine]:
    return [one.line for one in read(path).interactions.values()]


def test_the_same_bytes_are_found_and_so_is_what_means_the_same(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    text = recorded(path, BODY)
    assert lines(path)[0].sent is not None
    spelled_otherwise = json.dumps(dict(reversed(BODY.items())), indent=1).encode()
    with use(path):
        assert post(1, json.dumps(BODY).encode()) == text
    with use(path):
        assert post(1, spelled_otherwise, "/elsewhere/v1/chat/completions") == text


def test_the_same_call_again_is_another_call_however_it_is_spelled(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "new_episodes"):
        texts = [post(server.port, json.dumps(BODY, indent=n).encode()) for n in (None, 1, None)]
    assert len(set(texts)) == 3
    with use(path):
        assert [post(1, json.dumps(BODY, indent=n).encode()) for n in (2, None, None)] == texts
    with use(path) as session:
        for text in texts:
            assert post(1, json.dumps(BODY).encode()) == text
        assert session.claim_as_sent(lines(path)[0].sent or "") is None


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        ("the key is sk-proj-1234567890abcdefghijklmnop", None),
        ("it is 2026-11-22", RecordingRules(normalise=("dates",))),
    ],
)
def test_no_digest_is_kept_of_what_is_not_kept(
    tmp_path: Path, said: str, rules: RecordingRules | None
):
    path = tmp_path / "0.jsonl"
    body = {**BODY, "messages": [{"role": "user", "content": said}]}
    text = recorded(path, body, rules)
    assert lines(path)[0].sent is None
    with use(path, rules=rules):
        assert post(1, json.dumps(body).encode()) == text


def test_a_request_that_was_edited_by_hand_is_not_found_by_its_old_bytes(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    text = recorded(path, BODY)
    path.write_text(path.read_text().replace('"text":"go"', '"text":"stop"'))
    repair(path)
    with pytest.raises(ReplayMissError), use(path):
        httpx2.post("http://h/v1/chat/completions", content=json.dumps(BODY))
    stop = {**BODY, "messages": [{"role": "user", "content": "stop"}]}
    with use(path):
        assert post(1, json.dumps(stop).encode()) == text


def test_the_same_bytes_put_elsewhere_are_no_model_call(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    recorded(path, BODY)
    with pytest.raises(ReplayMissError), use(path):
        httpx2.put("http://h/v1/chat/completions", content=json.dumps(BODY).encode())
