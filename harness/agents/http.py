"""Agents over HTTP; needs the extra `http`. Serve the application with uvicorn, for instance."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import cast

from pydantic import Field
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.agents.connection import connect
from harness.agents.definition import AgentDefinition
from harness.agents.workflow import Connect, check_model_name, invoke_agent, user_message
from harness.errors import BadInputError, ConfigurationError, InfrastructureError
from harness.loader.reading import known, validated
from harness.redaction import Redactor
from harness.schema.loop_config import TerminationReason
from harness.schema.record import JsonObject, Record, storable

INVOKE = "agents:invoke"
"""The scope that every call needs."""

MAX_BODY_BYTES = 1_000_000

_LOG = logging.getLogger("harness.agents")

_NOT_FOR_CALLERS = frozenset(
    {
        TerminationReason.MODEL_ERROR,
        TerminationReason.CONTEXT_EXCEEDED,
        TerminationReason.INFRASTRUCTURE_ERROR,
        TerminationReason.REPLAY_MISS,
    }
)
"""Endings whose reason is a text of the vendor's or the server's own."""

_NOT_ASKED = "the model could not be asked; see the server's log"


class InvokeRequest(Record):
    """The body of a call."""

    inputs: JsonObject = Field(default_factory=dict)
    """A value for each input of the agent."""
    model: str | None = None
    """Name of another model: one that the agent's definition lists."""
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    max_iterations: int | None = Field(default=None, ge=1)
    """At most the agent's own limit."""


def app(
    agents: Mapping[str, AgentDefinition],
    *,
    tokens: Mapping[str, Collection[str]],
    connect: Connect = connect,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> Starlette:
    """The application that serves agents.

    `POST /v1/agents/NAME/invoke-iterative` gives what `invoke_agent` does, without what looks like
    a credential and without the texts of vendors' errors, which are logged; `GET /v1/agents` lists
    the agents that the caller may invoke. Errors are `{"error": "one line"}`.

    Args:
        agents: By name, as `load_agents` gives them.
        tokens: Bearer token -> scopes of its owner: `agents:invoke` for every call, what an agent
            asks for besides, and `tools:execute` or `tools:NAME` for the tools it may run.
        connect: Makes what answers the model calls; live clients if not given.
        max_body_bytes: Larger requests are refused.

    Raises:
        ConfigurationError: agents or tokens that cannot be meant.
    """
    _check_agents(agents)
    callers = _Callers(tokens, _scopes_of(agents))

    async def list_agents(request: Request) -> Response:
        scopes = callers.scopes_of(request)
        _need(scopes, [INVOKE])
        return JSONResponse(
            {"agents": [_shown(agent) for agent in agents.values() if _may_call(scopes, agent)]}
        )

    async def invoke(request: Request) -> Response:
        scopes = callers.scopes_of(request)
        _need(scopes, [INVOKE])
        name = request.path_params["name"]
        agent = agents.get(name)
        if agent is None:
            raise HTTPException(404, f"no agent {name!r}; {known(agents, name)}")
        _need(scopes, agent.file.scopes)
        body = _invoke_request(await _body(request, max_body_bytes))
        call = _checked_call(agent, body, scopes, connect)
        # The loop is synchronous: in a thread, one call does not hold up the others.
        return JSONResponse(await run_in_threadpool(_answered, call))

    return Starlette(
        routes=[
            Route("/v1/agents", list_agents, methods=["GET"]),
            Route("/v1/agents/{name}/invoke-iterative", invoke, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: _answer_http_error,
            BadInputError: _answer_bad_input,
            Exception: _answer_failure,
        },
    )


def _checked_call(
    agent: AgentDefinition, body: InvokeRequest, scopes: Collection[str], connect: Connect
) -> Callable[[], JsonObject]:
    """The call that is asked for.

    Raises:
        BadInputError: the caller may not ask for it.
    """
    _check_allowed(body, agent)
    user_message(agent, body.inputs)
    limit = {} if body.max_iterations is None else {"max_iterations": body.max_iterations}
    return partial(
        invoke_agent,
        agent,
        body.inputs,
        model=body.model,
        temperature=body.temperature,
        config=limit,
        scopes=scopes,
        connect=connect,
    )


def _answered(call: Callable[[], JsonObject]) -> JsonObject:
    """What the caller gets of a call whose inputs were checked."""
    try:
        result = call()
    except BadInputError as error:
        # A client, folder or file that cannot be used now is no fault of the caller's.
        raise InfrastructureError(str(error)) from error
    result = cast(JsonObject, Redactor({}).json(result))
    if result["termination_reason"] in _NOT_FOR_CALLERS:
        _LOG.warning(
            "agent %s, run %s ended %s: %s",
            *(result[key] for key in ("agent", "run_id", "termination_reason", "error")),
        )
        result = {**result, "error": _NOT_ASKED}
    return result


def _check_agents(agents: object) -> None:
    if not isinstance(agents, Mapping) or not all(
        isinstance(agent, AgentDefinition) for agent in agents.values()
    ):
        raise ConfigurationError(
            f"agents is a {type(agents).__name__}: give definitions by name, as load_agents does"
        )


def _scopes_of(agents: Mapping[str, AgentDefinition]) -> set[str]:
    """Every scope that allows something."""
    scopes = {INVOKE, "tools:execute"}
    for agent in agents.values():
        scopes |= {*agent.file.scopes, *(f"tools:{name}" for name in agent.tool_names)}
    return scopes


def _check_tokens(tokens: object, known_scopes: Collection[str]) -> None:
    """Refuse what would let in nobody or everybody; a token itself is never shown."""
    if not isinstance(tokens, Mapping):
        raise ConfigurationError(
            f"tokens is a {type(tokens).__name__}: give the scopes of each token, as in "
            f"{{'secret-token': [{INVOKE!r}]}}"
        )
    for token, scopes in tokens.items():
        if not isinstance(token, str) or not token.strip():
            raise ConfigurationError("tokens: an empty token would let everybody in; give a text")
        if isinstance(scopes, str) or not isinstance(scopes, Collection):
            raise ConfigurationError(
                f"tokens: scopes = {scopes!r}: give a list of scopes, as in [{INVOKE!r}]"
            )
        for scope in scopes:
            if scope not in known_scopes:
                raise ConfigurationError(
                    f"tokens: the scope {scope!r} allows nothing; {known(known_scopes, str(scope))}"
                )


def _check_allowed(body: InvokeRequest, agent: AgentDefinition) -> None:
    """A caller may ask for less than the owner allows, not for more."""
    limit = agent.config.max_iterations
    if body.max_iterations is not None and body.max_iterations > limit:
        raise BadInputError(
            f"body: max_iterations = {body.max_iterations}: agent {agent.name!r} allows at most "
            f"{limit}; lower it or leave it out"
        )
    if body.model is None:
        return
    check_model_name(body.model)
    allowed = (agent.file.model.name, *agent.file.models)
    if body.model not in allowed:
        raise BadInputError(
            f"body: model = {body.model!r}: the definition of agent {agent.name!r} does not list "
            f"it in models; {known(allowed, body.model)}"
        )


class _Callers:
    """Who may call, by token."""

    def __init__(
        self, tokens: Mapping[str, Collection[str]], known_scopes: Collection[str]
    ) -> None:
        _check_tokens(tokens, known_scopes)
        self._scopes = [(_digest(token), frozenset(scopes)) for token, scopes in tokens.items()]

    def scopes_of(self, request: Request) -> frozenset[str]:
        """The scopes of the caller; the time it takes says nothing about the tokens there are."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        given = _digest(token.strip())
        found: frozenset[str] | None = None
        for digest, scopes in self._scopes:
            if hmac.compare_digest(digest, given):
                found = scopes
        if found is None or kind.lower() != "bearer":
            raise HTTPException(
                401,
                "give a known token: Authorization: Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _may_call(scopes: frozenset[str], agent: AgentDefinition) -> bool:
    return scopes.issuperset(agent.file.scopes)


def _need(scopes: frozenset[str], needed: Collection[str]) -> None:
    missing = [scope for scope in needed if scope not in scopes]
    if missing:
        raise HTTPException(403, f"the token lacks the scope {missing[0]}")


def _shown(agent: AgentDefinition) -> JsonObject:
    return {
        "name": agent.name,
        "description": agent.file.description,
        "inputs": {name: entry.model_dump() for name, entry in agent.file.inputs.items()},
    }


async def _body(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise HTTPException(413, f"the body is larger than {limit} bytes")
    return bytes(body)


def _invoke_request(body: bytes) -> InvokeRequest:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInputError("the body is no JSON; send an object with inputs") from None
    if not isinstance(value, dict):
        raise BadInputError("the body must be a JSON object with inputs")
    return validated(InvokeRequest, value, where="body")


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, error.detail, error.headers)


async def _answer_bad_input(_: Request, error: Exception) -> Response:
    return _error(422, str(error))


async def _answer_failure(_: Request, error: Exception) -> Response:
    # What failed is for the server's log, where it goes as well, and not for the caller.
    return _error(500, f"the call failed ({type(error).__name__}); see the server's log")


def _error(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    line = " ".join(storable(text).split())
    return JSONResponse({"error": line}, status_code=status, headers=headers)
