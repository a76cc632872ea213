"""JSON of any depth is kept so that it is read again, and nothing goes wrong unremembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from harness.cassette import use
from harness.cassette.care.repair import plan_repair
from harness.cassette.file.tape import ToolKey
from harness.cassette.file.view import read
from harness.cassette.format import StoredResponse, StoredResult
from harness.cassette.http.answer import Answer, Live, answer_to
from harness.cassette.http.recording import Recording
from harness.cassette.http.routing import candidates
from harness.cassette.replay.store import check_file
from harness.cassette.request.canonical import MAX_DEPTH, canonical_request, parse_body
from harness.errors import InfrastructureError
from tests.cassette.cells import answer, ask, open_store, request

URL = "http://x/v1/chat/completions"
DEPTHS = [MAX_DEPTH - 1, MAX_DEPTH, 196, 250, 500, 5_000, 200_000]


def nested(depth: int) -> str:
    """A JSON object with so many levels."""
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


def recorded_and_replayed(
    path: Path, content: str, *, body: bytes = b"{}", kind: str = "application/json"
) -> str:
    """What the agent gets the second time; the file is good."""

    def live(asked: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=content.encode(), headers={"content-type": kind})

    with httpx2.Client(transport=httpx2.MockTransport(live)) as client:
        with use(path, "new_episodes") as session:
            assert client.post(URL, content=body).text == content
        assert session.recorded == 1
        check_file(path)
        assert plan_repair(path).changes == ()
        with use(path) as session:
            text = client.post(URL, content=body).text
        assert session.served == 1
    return text


def kept_as(path: Path) -> str:
    (line,) = read(path).interactions.values()
    return line.line.response.type


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_answer_of_any_depth_is_replayed(tmp_path: Path, depth: int):
    path = tmp_path / "0.jsonl"
    assert recorded_and_replayed(path, nested(depth)) == nested(depth)
    assert kept_as(path) == ("json" if depth <= MAX_DEPTH else "text")


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_event_of_any_depth_is_replayed(tmp_path: Path, depth: int):
    path = tmp_path / "0.jsonl"
    events = f"data: {nested(depth)}\n\ndata: [DONE]\n\n"
    body = b'{"stream":true,"messages":[]}'
    again = recorded_and_replayed(path, events, body=body, kind="text/event-stream")
    assert again == events


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("place", ['{"model":"m","messages":[%s]}', '{"messages":[],"model":%s}'])
def test_a_request_of_any_depth_is_recorded_and_found(tmp_path: Path, depth: int, place: str):
    body = (place % nested(depth)).encode()
    assert recorded_and_replayed(tmp_path / "0.jsonl", '{"b":1}', body=body) == '{"b":1}'


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_request_of_any_depth_is_missed_like_every_other(tmp_path: Path, depth: int):
    with open_store(tmp_path / "0.jsonl") as store, pytest.raises(Exception, match="no recording"):
        store.session("a").claim(canonical_request("POST", URL, nested(depth).encode()))


def test_a_body_that_is_too_deep_is_text_in_its_identity():
    identity = canonical_request("POST", URL, nested(MAX_DEPTH + 1).encode())
    assert f"'text': '{nested(MAX_DEPTH + 1)}'" in str(identity.parameters)
    body = f'{{"model":"m","messages":[{nested(MAX_DEPTH - 2)}]}}'
    assert canonical_request("POST", URL, body.encode()).is_model_call
    with pytest.raises(ValueError, match="more than 150 levels"):
        parse_body("[" * 151 + "]" * 151)


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    arguments = cast(dict[str, Any], json.loads(nested(230)))
    result = StoredResult(content="", status="ok", duration_s=0.1)
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        ask(session, "go", live="x")
        key = ToolKey(session.last, 0, "t", arguments, "", 1.0)
        with pytest.raises(InfrastructureError, match="in a way that can be read again"):
            session.record_tool(key, result, None)
        with pytest.raises(InfrastructureError, match="in a way that can be read again"):
            session.finish()
    with open_store(path, "new_episodes") as store:
        assert ask(store.session("a"), "go", live="again") == "x"


def out_of_range(session: Any) -> None:
    nan = StoredResponse.model_construct(
        status=200, headers={}, type="json", body=float("nan"), cut=False
    )
    session.append(request("go"), nan, latency_s=0.1)


def no_status(session: Any) -> None:
    (entry,) = candidates()
    live = Live(entry, request("go"), 0.0)
    Recording(live, cast(int, "none"), {}).end()


def no_address(session: Any) -> None:
    refused = answer_to("POST", "http://[bad/v1", b"{}")
    assert isinstance(refused, Answer)
    assert refused.response.status == 400
    raise InfrastructureError


@pytest.mark.parametrize("trouble", [out_of_range, no_status, no_address])
def test_what_nobody_expected_is_remembered_and_ends_the_trial(
    tmp_path: Path, trouble: Callable[[Any], None]
):
    def recording() -> None:
        with use(tmp_path / "0.jsonl", "new_episodes") as session:
            with pytest.raises(InfrastructureError):
                trouble(session)
            # Nothing more is recorded then.
            with pytest.raises(InfrastructureError, match="cannot go on"):
                session.append(request("more"), answer("x"), latency_s=0.1)
            assert session.recorded == 0

    with pytest.raises(InfrastructureError, match=r"0\.jsonl.*: cannot go on: \w+Error: "):
        recording()
