"""What a recorded conversation says about the task, the agent and how it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.cassette.convert.exchange import Exchange, Found
from harness.cassette.replay.turns import last_turn, said
from harness.cassette.response.body import answering_model
from harness.cassette.show.transcript import answered_turn, declared_tools
from harness.loop.text_protocols.json_values import json_values
from harness.loop.text_protocols.terminus2 import ERRORS, LOAD_SKILL, STATE
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message, ToolSpec
from harness.schema.record import JsonObject

_SYSTEM = ("system", "developer")
_ANY: JsonObject = {"type": "object"}
_SYSTEM_PARAMETERS = ("system", "instructions")
_TASK = re.compile(rf"^Task Description:\n(.*?)(?=\n\s*{STATE}|\Z)", re.S | re.M)
_SKILLS = re.compile(r"^available_skills:\s*(?=\[)", re.MULTILINE)
_LOADED = re.compile(
    r"\ALoaded skill: (\S+)\n(?:---\n)?(.*?)(?=\n\s*(?:Current|New) Terminal|\Z)", re.DOTALL
)
_HEAD = re.compile(r"\A(?:---\n)?(?:[\w-]+:.*\n)+---\n+")
"""A skill's own front matter."""
_COMPLETE = re.compile(r'"task_complete"\s*:\s*true')
_BESIDE_COMMANDS = frozenset({"analysis", "plan", "task_complete"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MOST_NAME = 64


@dataclass(frozen=True, slots=True)
class ToldSkill:
    """A skill that the agent was told of."""

    name: str
    description: str
    text: str
    """What the agent read of it when it loaded it; empty where it never did."""


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation, as far as running it again needs it."""

    instruction: str
    system: str
    preset: str
    skills: tuple[ToldSkill, ...]
    endpoint: str
    """The vendor's format that its answers are in."""
    model: str
    tools: tuple[ToolSpec, ...]
    """Tools that were offered, or called."""
    turns: int
    completes: bool
    """Whether the last answer ends the conversation; else a limit did."""
    replies: tuple[str, ...]
    """What somebody said after answers that asked for nothing to be done."""
    handed_in: str | None
    """The tool whose call ended the conversation."""
    confirms: bool
    """Whether the agent was asked if it is sure."""

    @property
    def manner(self) -> tuple[object, ...]:
        """What conversations have in common that one task replays, as repeats of each other."""
        names = frozenset(tool.name for tool in self.tools)
        length = None if self.completes else self.turns
        of_loop = (self.preset, self.completes, self.confirms, len(self.replies), self.handed_in)
        return (self.system, names, length, *of_loop)


def read_told(found: Found) -> Told:
    """What a conversation says."""
    prompts = [said(_heard(one)).strip() for one in found.exchanges]
    answers = [_answer(one) for one in found.exchanges]
    first = found.exchanges[0]
    system = _system(first)
    preset = _preset(f"{system}\n{prompts[0]}", answers)
    last = answers[-1]
    replies: tuple[str, ...] = ()
    handed_in = None
    if preset == "default":
        ended = found.meta.get("termination_reason")
        after = zip(answers, prompts[1:], strict=False)
        replies = tuple(prompt for answer, prompt in after if not answer.tool_calls)
        handed_in = _handed_in(answers) if ended == TerminationReason.COMPLETED else None
        said_last = not last.tool_calls and ended in (None, TerminationReason.COMPLETED)
        completes, confirms = said_last or handed_in is not None, False
    else:
        completes = _is_complete(last)
        before = len(answers) > 1 and _is_complete(answers[-2])
        confirms = completes and before and not prompts[-1].startswith(ERRORS)
    models = (
        answering_model(one.response) or one.request.parameters.get("model")
        for one in found.exchanges
    )
    return Told(
        instruction=_instruction(prompts[0]),
        system=system,
        preset=preset,
        skills=_skills(system, prompts),
        endpoint=first.request.endpoint,
        model=next((name for name in models if isinstance(name, str) and name), "unknown"),
        tools=tuple(tool for tool in _tools(first, answers) if tool.name != handed_in),
        turns=len(answers),
        completes=completes,
        replies=replies,
        handed_in=handed_in,
        confirms=confirms,
    )


def _heard(exchange: Exchange) -> Sequence[JsonObject]:
    """What a call adds to the conversation, without the system prompt."""
    turn = last_turn(exchange.request.messages)
    return [message for message in turn if message.get("role") not in _SYSTEM]


def _answer(exchange: Exchange) -> Message:
    turn = answered_turn(exchange.request.endpoint, exchange.response)
    return Message(role="assistant", content=() if turn is None else turn.content)


def _system(exchange: Exchange) -> str:
    given = exchange.request.parameters
    prompts: list[JsonObject]
    prompts = [{"content": given[key]} for key in _SYSTEM_PARAMETERS if given.get(key)]
    prompts += [one for one in exchange.request.messages if one.get("role") in _SYSTEM]
    return said(prompts).strip()


def _tools(first: Exchange, answers: Sequence[Message]) -> tuple[ToolSpec, ...]:
    """What was offered; of a tool that was only called the name alone is known."""
    found: dict[str, ToolSpec] = {}
    offered = first.request.parameters.get("tools")
    for tool in declared_tools(offered) if isinstance(offered, list) else ():
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(inner, dict) and isinstance(name := inner.get("name"), str) and name:
            shape = inner.get("parameters") or inner.get("input_schema")
            found[name] = ToolSpec(
                name=name,
                description=str(inner.get("description") or ""),
                parameters=shape if isinstance(shape, dict) else _ANY,
            )
    called = {call.name for one in answers for call in one.tool_calls} - found.keys() - {""}
    unknown = (ToolSpec(name=name, description="", parameters=_ANY) for name in sorted(called))
    return (*found.values(), *unknown)


def _preset(prompt: str, answers: Sequence[Message]) -> str:
    """How the agent talked: Terminus answers in its JSON, and is told so first.

    What Harbor writes of Terminus in ATIF has calls in place of its text, and replays as that.
    """
    if any(one.tool_calls for one in answers):
        return "default"
    loads = any(_loads_skill(one) for one in answers)
    is_asked = '"keystrokes"' in prompt and '"commands"' in prompt
    if not (is_asked or loads or any(map(_is_terminus, answers))):
        return "default"
    return "terminus2-skills" if loads or f'"{LOAD_SKILL}"' in prompt else "terminus2"


def _is_terminus(answer: Message) -> bool:
    return any(
        isinstance(value.get("commands"), list) and value.keys() & _BESIDE_COMMANDS
        for value in _objects(answer)
    )


def _loads_skill(answer: Message) -> bool:
    return any(
        value.keys() == {LOAD_SKILL} and isinstance(value[LOAD_SKILL], str)
        for value in _objects(answer)
    )


def _objects(answer: Message) -> Iterator[dict[str, object]]:
    for found in json_values(answer.text):
        if isinstance(found.value, dict):
            yield found.value


def _handed_in(answers: Sequence[Message]) -> str | None:
    """The tool that was called last, where it was not called in an earlier turn."""
    if not answers[-1].tool_calls:
        return None
    name = answers[-1].tool_calls[-1].name
    calls = [call.name for one in answers for call in one.tool_calls]
    return name if name and calls.count(name) == 1 else None


def _instruction(prompt: str) -> str:
    """What was asked: all of the first prompt, or its part about the task."""
    task = _TASK.search(prompt)
    text = prompt if task is None else task[1]
    return text.strip() or "(The recording does not tell what was asked.)"


def _is_complete(answer: Message) -> bool:
    return _COMPLETE.search(answer.text) is not None


def _skills(system: str, prompts: Sequence[str]) -> tuple[ToldSkill, ...]:
    """The skills that the system prompt or the first one lists, with what was loaded later."""
    read: dict[str, str] = {}
    for prompt in prompts:
        if loaded := _LOADED.match(prompt):
            read.setdefault(loaded[1], _HEAD.sub("", loaded[2].strip()))
    return tuple(
        ToldSkill(name, description, read.get(name, ""))
        for name, description in dict((*_listed(system), *_listed(prompts[0]))).items()
    )


def _listed(prompt: str) -> Iterator[tuple[str, str]]:
    place = _SKILLS.search(prompt)
    if place is None:
        return
    try:
        listed, _ = json.JSONDecoder(strict=False).raw_decode(prompt, place.end())
    except (ValueError, RecursionError):
        return
    names = set()
    for one in listed if isinstance(listed, list) else ():
        told = one if isinstance(one, dict) else {}
        # The name in the list may be spelled otherwise than the folder, which is what is loaded.
        name = str(told.get("location") or told.get("name") or "").rstrip("/").rpartition("/")[2]
        if _NAME.fullmatch(name) and len(name) <= _MOST_NAME and name not in names:
            names.add(name)
            yield name, str(told.get("description") or name)
