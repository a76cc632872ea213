"""Agents over real HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

from harness.agents.connection import connect
from harness.agents.definition import load_agents
from harness.agents.http import app
from harness.agents.workflow import Connect, invoke_agent
from harness.errors import (
    CassetteError,
    ConfigurationError,
    ContextExceededError,
    InfrastructureError,
    OverloadedError,
    ReplayMissError,
)
from harness.protocols import OnDelta
from harness.providers.scripted import Scripted, turn
from harness.schema.messages import ModelTurn
from harness.schema.suite import ModelConfig
from harness.values import ModelRequest
from tests.agents.support import write_agents
from tests.loop.support import call
from tests.providers.lookalikes import openai_chat
from tests.providers.lookalikes.server import serving

TOKENS = {
    "t-all": ["agents:invoke", "tools:execute", "staff"],
    "t-invoke": ["agents:invoke"],
    "t-none": ["staff"],
}
COUNTER = "/v1/agents/counter/invoke-iterative"
TALKER = "/v1/agents/talker/invoke-iterative"


def counting(_: ModelConfig) -> Scripted:
    return Scripted(
        [
            turn(calls=[call("1", "query", harbour="north")]),
            turn(calls=[call("2", "output", boats=4)]),
        ]
    )


class Server:
    """What answers, and how to ask it."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "t-all",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = dict(headers or {})
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, raw if body is not None else None, sent)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer, {k.lower(): v for k, v in response.getheaders()}


@contextmanager
def served(application: Starlette) -> Iterator[Server]:
    config = uvicorn.Config(application, port=0, log_level="critical", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield Server(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def agents_served(folder: Path, connect: Connect = counting, **how: Any) -> Iterator[Server]:
    with served(app(load_agents(folder), tokens=TOKENS, connect=connect, **how)) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_agents(tmp_path)


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with agents_served(folder) as server:
        yield server


def test_a_call_gives_what_the_python_call_gives(folder: Path, server: Server) -> None:
    inputs = {"harbour": "north"}
    status, over_http, _ = server.ask("POST", COUNTER, {"inputs": inputs})
    in_python = invoke_agent(load_agents(folder)["counter"], inputs, connect=counting)
    assert status == 200
    for result in (over_http, in_python):
        assert len(str(result.pop("run_id"))) > 8
        assert result.pop("duration_s")
    assert over_http == in_python
    assert over_http["output"] == {"boats": 4}


def test_the_body_may_change_model_temperature_and_iterations(folder: Path) -> None:
    with serving(openai_chat.CHAT) as vendor:

        def at_vendor(model: ModelConfig) -> Any:
            return connect(model.model_copy(update={"base_url": f"{vendor.url}/v1"}))

        body = {"inputs": {"topic": "x"}, "model": "m-9", "temperature": 0.25, "max_iterations": 1}
        with agents_served(folder, at_vendor) as server:
            status, answer, _ = server.ask("POST", TALKER, body)
    assert (status, answer["termination_reason"]) == (200, "completed")
    assert vendor.bodies[0]["model"] == "m-9"
    assert vendor.bodies[0]["temperature"] == 0.25
    assert vendor.bodies[0]["messages"][-1]["content"] == '{"topic": "x"}'


def test_agents_are_listed_to_those_who_may_call_them(server: Server) -> None:
    status, answer, _ = server.ask("GET", "/v1/agents")
    assert status == 200
    assert [agent["name"] for agent in answer["agents"]] == ["counter", "talker"]
    assert answer["agents"][0] == {
        "name": "counter",
        "description": "Counts boats.",
        "inputs": {
            "harbour": {"description": "Which harbour.", "required": True},
            "day": {"description": "", "required": False},
        },
    }
    _, answer, _ = server.ask("GET", "/v1/agents", token="t-invoke")
    assert [agent["name"] for agent in answer["agents"]] == ["counter"]


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({}, None),
        ({}, "t-al"),
        ({}, ""),
        ({}, "t-all2"),
        ({"authorization": "Basic t-all"}, None),
        ({"authorization": "t-all"}, None),
    ],
)
def test_without_a_known_token_nothing_is_told(
    server: Server, headers: dict[str, str], token: str | None
) -> None:
    for method, path in (
        ("GET", "/v1/agents"),
        ("POST", COUNTER),
        ("POST", "/v1/agents/x/invoke-iterative"),
    ):
        status, answer, given = server.ask(method, path, {}, token=token, headers=headers)
        assert status == 401
        assert answer == {"error": "give a known token: Authorization: Bearer TOKEN"}
        assert given["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("path", "token", "scope"),
    [
        (COUNTER, "t-none", "agents:invoke"),
        ("/v1/agents/x/invoke-iterative", "t-none", "agents:invoke"),
        (TALKER, "t-invoke", "staff"),
    ],
)
def test_a_scope_that_is_lacking_is_named(
    server: Server, path: str, token: str, scope: str
) -> None:
    status, answer, _ = server.ask("POST", path, {"inputs": {}}, token=token)
    assert (status, answer) == (403, {"error": f"the token lacks the scope {scope}"})


def test_tools_run_within_the_scopes_of_the_token(server: Server) -> None:
    body = {"inputs": {"harbour": "north"}}
    _, answer, _ = server.ask("POST", COUNTER, body, token="t-invoke")
    assert (answer["tools_used"], answer["output"]) == ([], {"boats": 4})


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", "/v1/agents/conter/invoke-iterative", 404, "did you mean 'counter'?"),
        ("GET", "/v1/agent", 404, "Not Found"),
        ("GET", COUNTER, 405, "Method Not Allowed"),
    ],
)
def test_what_is_not_there_is_said_in_json(
    server: Server, method: str, path: str, status: int, words: str
) -> None:
    found, answer, _ = server.ask(method, path, {} if method == "POST" else None)
    assert found == status
    assert words in answer["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "the body is no JSON"),
        (b"[" * 100_000, "the body is no JSON"),
        (b"\xff", "the body is no JSON"),
        (b"", "the body is no JSON"),
        ([], "must be a JSON object"),
        ({}, "input 'harbour' is missing"),
        ({"input": {}}, "did you mean 'inputs'?"),
        ({"inputs": []}, "body: inputs = []"),
        ({"inputs": {"harbour": 1, "x": 1}}, "unknown input 'x'"),
        ({"inputs": {"a\ud800\nb": 1}}, "body: "),
        (b'{"inputs": {"harbour": NaN}}', "no JSON"),
        ({"inputs": {"harbour": 1}, "max_iterations": 0}, "max_iterations = 0"),
        ({"inputs": {"harbour": 1}, "temperature": "hot"}, "temperature = 'hot'"),
        (b'{"inputs": {"harbour": 1}, "temperature": Infinity}', "temperature"),
        ({"inputs": {"harbour": 1}, "temperature": 2.1}, "temperature = 2.1"),
        ({"inputs": {"harbour": 1}, "max_iterations": 5}, "agent 'counter' allows at most 4"),
        ({"inputs": {"harbour": 1}, "model": "m-9"}, "does not list it in models; did you"),
        ({"inputs": {"harbour": 1}, "model": "openai:m-1"}, "give the name only, 'm-1'"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_in_one_line(
    server: Server, body: Any, words: str
) -> None:
    status, answer, _ = server.ask("POST", COUNTER, body)
    assert status == 422, answer
    assert list(answer) == ["error"]
    assert words in answer["error"]
    assert "\n" not in answer["error"]


def test_a_body_that_is_too_large_is_refused(folder: Path) -> None:
    with agents_served(folder, max_body_bytes=100) as server:
        body = {"inputs": {"harbour": "x" * 100}}
        status, answer, _ = server.ask("POST", COUNTER, body)
        assert (status, answer) == (413, {"error": "the body is larger than 100 bytes"})
        status, _, _ = server.ask("POST", COUNTER, {"inputs": {"harbour": "x"}})
        assert status == 200


def test_a_server_that_cannot_reach_its_model_does_not_blame_the_caller(folder: Path) -> None:
    def no_key(_: ModelConfig) -> Scripted:
        raise ConfigurationError("no key: set SECRET_VARIABLE")

    with agents_served(folder, no_key) as server:
        status, answer, _ = server.ask("POST", COUNTER, {"inputs": {"harbour": 1}})
        refused, _, _ = server.ask("POST", COUNTER, {"inputs": {}})
    assert status == 500
    assert answer == {"error": "the call failed (InfrastructureError); see the server's log"}
    assert refused == 422, "inputs are checked before"


def test_calls_run_beside_each_other(folder: Path) -> None:
    both = threading.Barrier(2)

    class Meeting:
        def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
            both.wait(timeout=20)
            return turn("We met.")

    answers: list[Any] = []
    with agents_served(folder, lambda _: Meeting()) as server:

        def ask() -> None:
            answers.append(server.ask("POST", TALKER, {"inputs": {"topic": "x"}})[1])

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer["raw_response"] for answer in answers] == ["We met."] * 2


def test_a_caller_may_lower_the_limit_and_name_the_models_own_name(server: Server) -> None:
    body = {"inputs": {"harbour": "north"}, "model": "m-1", "max_iterations": 1}
    status, answer, _ = server.ask("POST", COUNTER, body)
    assert (status, answer["termination_reason"]) == (200, "max_iterations")


def test_a_model_that_fails_is_a_result_and_not_an_error_of_the_call(folder: Path) -> None:
    with agents_served(folder, lambda _: Scripted([])) as server:
        status, answer, _ = server.ask("POST", TALKER, {"inputs": {"topic": "x"}})
    assert (status, answer["termination_reason"]) == (200, "model_error")


class Failing:
    """A vendor that says more than callers are to know."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        raise self.error


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (OverloadedError, "model_error"),
        (ContextExceededError, "context_exceeded"),
        (InfrastructureError, "infrastructure_error"),
        (ReplayMissError, "replay_miss"),
        (CassetteError, "model_error"),
    ],
)
def test_what_a_vendor_says_about_a_failure_is_for_the_log(
    folder: Path, caplog: pytest.LogCaptureFixture, kind: type[Exception], reason: str
) -> None:
    key = "sk-" + "a1" * 20
    failing = Failing(kind(f"http://10.0.0.7:9/v1 refused {key}"))
    with agents_served(folder, lambda _: failing) as server:
        status, answer, _ = server.ask("POST", TALKER, {"inputs": {"topic": "x"}})
    assert (status, answer["termination_reason"]) == (200, reason)
    assert answer["error"] == "the model could not be asked; see the server's log"
    assert "10.0.0.7" not in json.dumps(answer)
    (logged,) = [one for one in caplog.records if one.name == "harness.agents"]
    assert logged.levelname == "WARNING"
    assert "http://10.0.0.7:9/v1 refused [redacted]" in logged.getMessage()
    assert answer["run_id"] in logged.getMessage()


def test_an_answer_holds_no_credentials(folder: Path) -> None:
    with agents_served(folder, lambda _: Scripted([turn("It is sk-" + "a1" * 20)])) as server:
        _, answer, _ = server.ask("POST", TALKER, {"inputs": {"topic": "x"}})
    assert answer["raw_response"] == "It is [redacted]"


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ({"": ["agents:invoke"]}, "an empty token would let everybody in"),
        ({5: ["agents:invoke"]}, "give a text"),
        (["secret"], "tokens is a list: give the scopes of each token"),
        ({"secret": "agents:invoke"}, "scopes = 'agents:invoke': give a list"),
        ({"secret": None}, "scopes = None: give a list"),
        ({"secret": ["agent:invoke"]}, "'agent:invoke' allows nothing; did you mean 'agents:inv"),
        ({"secret": ["tools:qery"]}, "did you mean 'tools:query'?"),
        ({"secret": ["staf"]}, "did you mean 'staff'?"),
        ({"secret": [5]}, "the scope 5 allows nothing"),
    ],
)
def test_tokens_that_cannot_be_meant_are_refused_and_not_shown(
    folder: Path, tokens: Any, words: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        app(load_agents(folder), tokens=tokens)
    assert words in str(error.value)
    assert "'secret'" not in str(error.value)


def test_every_scope_that_allows_something_may_be_given(folder: Path) -> None:
    app(
        load_agents(folder),
        tokens={"a": ["agents:invoke", "tools:execute", "tools:query", "tools:list_dir", "staff"]},
    )


def test_agents_are_given_by_name(folder: Path) -> None:
    agents = load_agents(folder)
    wrongs: list[Any] = [agents["counter"], list(agents.values()), {"counter": "counter.toml"}]
    for wrong in wrongs:
        with pytest.raises(ConfigurationError, match="give definitions by name, as load_agents"):
            app(wrong, tokens=TOKENS)
