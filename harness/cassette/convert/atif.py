"""Trajectories in ATIF, the format that Harbor writes: versions 1.0 to 1.8."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.cassette.convert.chat_calls import Answer, Transcript, text_of
from harness.cassette.convert.times import in_utc
from harness.schema.record import Json, JsonObject

NEWEST = "ATIF-v1.8"
_VERSION = re.compile(r"ATIF-v1\.[0-8](\.\d+)?\Z")


class _Read(BaseModel):
    """The part that is read; keys of any version may stand beside it."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _ToolCall(_Read):
    tool_call_id: str
    function_name: str
    arguments: JsonObject


class _Result(_Read):
    source_call_id: str | None = None
    content: str | list[JsonObject] | None = None
    subagent_trajectory_ref: Json = None


class _Observation(_Read):
    results: list[_Result]


class _Metrics(_Read):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


class _Step(_Read):
    timestamp: datetime | None = None
    source: Literal["user", "agent", "system"]
    model_name: str | None = None
    message: str | list[JsonObject]
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None


class _Agent(_Read):
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[JsonObject] | None = None


class _Trajectory(_Read):
    schema_version: str
    session_id: str | None = None
    extra: JsonObject | None = None
    agent: _Agent
    steps: list[_Step] = Field(min_length=1)
    subagent_trajectories: list[Json] | None = None


def is_atif(data: Json) -> bool:
    """Whether a file's content calls itself ATIF, of whatever version."""
    return isinstance(data, dict) and str(data.get("schema_version", "")).startswith("ATIF")


def read_atif(data: JsonObject) -> tuple[Transcript, JsonObject, list[str]]:
    """The conversation, what the file says about itself, and what was left out of it.

    Raises:
        ValueError: the file is of an unknown version, or not what ATIF says.
    """
    version = str(data.get("schema_version"))
    if not _VERSION.match(version):
        raise ValueError(f"schema_version: {version!r} is not known here; the newest is {NEWEST}")
    try:
        trajectory = _Trajectory.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from error
    messages: list[JsonObject] = []
    answers: dict[int, Answer] = {}
    screens: dict[int, str] = {}
    for step in trajectory.steps:
        if _is_answer(step):
            answers[len(messages)] = _answer(step, trajectory.agent)
            if step.tool_calls and (screen := _screen(step)) is not None:
                screens[len(messages)] = screen
        messages.extend(_messages(step))
    tools: list[Json] = [*(trajectory.agent.tool_definitions or ())]
    agent = trajectory.agent
    meta: JsonObject = {"agent": f"{agent.name} {agent.version}", "schema_version": version}
    if trajectory.session_id is not None:
        meta["session_id"] = trajectory.session_id
    meta |= dict(_about(trajectory.extra or {}))
    return Transcript(messages, answers, tools or None, screens), meta, list(_left_out(trajectory))


def _about(extra: JsonObject) -> Iterator[tuple[str, Json]]:
    """What our own exports say of the trial: what it was, and how it ended."""
    if isinstance(task := extra.get("task"), str) and task:
        told = (extra.get(key) for key in ("variant", "repeat"))
        yield "task", "-".join((task, *(str(one) for one in told if isinstance(one, str | int))))
    if isinstance(ending := extra.get("termination_reason"), str):
        yield "termination_reason", ending


def _is_answer(step: _Step) -> bool:
    """Whether a model was called for this step, in this trajectory."""
    return step.source == "agent" and not step.is_copied_context and step.llm_call_count != 0


def _answer(step: _Step, agent: _Agent) -> Answer:
    return Answer(
        model=step.model_name or agent.model_name,
        usage=_usage(step.metrics),
        recorded_at=in_utc(step.timestamp),
    )


def _usage(metrics: _Metrics | None) -> JsonObject | None:
    if metrics is None or metrics.prompt_tokens is None or metrics.completion_tokens is None:
        return None
    usage: JsonObject = {
        "prompt_tokens": metrics.prompt_tokens,
        "completion_tokens": metrics.completion_tokens,
        "total_tokens": metrics.prompt_tokens + metrics.completion_tokens,
    }
    if metrics.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": metrics.cached_tokens}
    return usage


def _messages(step: _Step) -> Iterator[JsonObject]:
    """A step's message, then what came of it."""
    role = {"user": "user", "system": "system", "agent": "assistant"}[step.source]
    message: JsonObject = {"role": role, "content": _content(step.message)}
    if role == "assistant":
        message["content"] = _said(step.message)
        if step.reasoning_content:
            message["reasoning_content"] = step.reasoning_content
    if step.tool_calls:
        message["tool_calls"] = [_call(call) for call in step.tool_calls]
    yield message
    calls = step.tool_calls or []
    results = _results(step)
    for result in results:
        named = result.source_call_id
        if named is None and len(calls) == len(results) == 1:
            named = calls[0].tool_call_id
        content = _content(result.content)
        if named is not None:
            yield {"role": "tool", "tool_call_id": named, "content": content}
        elif result.content is not None:
            yield {"role": "user", "content": content}


def _results(step: _Step) -> list[_Result]:
    return step.observation.results if step.observation else []


def _screen(step: _Step) -> str | None:
    """What all calls of a step gave together, as Terminus has it: no result names its call."""
    results = _results(step)
    if not results or any(result.source_call_id for result in results):
        return None
    return "\n".join(text_of(_content(result.content)) for result in results)


def _call(call: _ToolCall) -> JsonObject:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    function: JsonObject = {"name": call.function_name, "arguments": arguments}
    return {"id": call.tool_call_id, "type": "function", "function": function}


def _content(content: str | list[JsonObject] | None) -> Json:
    """Text, or parts: images become OpenAI's, by their address; nothing is opened."""
    return [_part(part) for part in content] if isinstance(content, list) else content or ""


def _part(part: JsonObject) -> JsonObject:
    source = part.get("source")
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text") or ""}
    if part.get("type") == "image" and isinstance(source, dict):
        return {"type": "image_url", "image_url": {"url": source.get("path")}}
    return part


def _said(message: str | list[JsonObject]) -> Json:
    """A model's answer: the text alone, since OpenAI's format answers in nothing else."""
    if isinstance(message, str):
        return message
    return "\n".join(str(part["text"]) for part in message if part.get("text"))


def _left_out(trajectory: _Trajectory) -> Iterator[str]:
    several = sum((step.llm_call_count or 0) > 1 for step in trajectory.steps)
    if several:
        yield f"steps that stand for several model calls, imported as one call each: {several}"
    if trajectory.subagent_trajectories:
        yield f"subagents' own trajectories: {len(trajectory.subagent_trajectories)}"
