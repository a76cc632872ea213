"""The text of every recorded call: what was asked anew, what was answered, what the tools gave."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cassette.file.view import CassetteView
from harness.cassette.format import ToolLine
from harness.cassette.show.conversations import Call, Conversations
from harness.cassette.show.transcript import (
    Passage,
    answer,
    answered_turn,
    is_the_models,
    said,
    settings,
)
from harness.schema.messages import ModelTurn

SENT_BACK_CHANGED = ", sent back changed"
"""Ends the title of a passage in which the agent altered the model's answer."""

_UNSEEN = ("Thinking", "Reasoning")
"""What a vendor may leave out or shorten when its answer is sent back."""


@dataclass(frozen=True, slots=True)
class SpokenCall:
    """One call as text."""

    call: Call
    turn: ModelTurn | None
    """The answer in neutral terms, where it is one."""
    asked: tuple[Passage, ...]
    """What is new in the request: settings that changed, and messages."""
    answered: tuple[Passage, ...]
    ran: tuple[ToolLine, ...]
    """The tools that its answer asked for."""


def spoken(view: CassetteView, arranged: Conversations) -> dict[str, SpokenCall]:
    """The text of all calls, by id, in the order recorded."""
    calls: dict[str, SpokenCall] = {}
    names: dict[str, dict[str, str]] = {}
    for name, call in arranged.calls.items():
        known = {} if call.before is None else dict(names[call.before])
        names[name] = known
        line = call.interaction.line
        asked = _settings(view, call, known)
        asked += _messages(call, None if call.before is None else calls[call.before], known)
        turn = answered_turn(call.interaction.endpoint, line.response)
        if turn is not None:
            known |= {block.id: block.name for block in turn.content if block.type == "tool_call"}
        answered = tuple(answer(turn, line.response))
        calls[name] = SpokenCall(call, turn, tuple(asked), answered, call.interaction.tools)
    return calls


def _settings(view: CassetteView, call: Call, names: dict[str, str]) -> list[Passage]:
    parameters = view.parameters.get(call.interaction.line.parameters)
    if parameters is None or not call.new_settings:
        return []
    return settings(parameters.endpoint, parameters.body, names)


def _messages(call: Call, before: SpokenCall | None, names: dict[str, str]) -> list[Passage]:
    """The new messages, without the answer before where it is sent back as it was."""
    messages = list(call.said)
    own = 0
    while before is not None and own < len(messages) and is_the_models(messages[own]):
        own += 1
    back = [passage for message in messages[:own] for passage in said(message, names)]
    rest = [passage for message in messages[own:] for passage in said(message, names)]
    if before is not None and _gist(back) == _gist(before.answered):
        return rest
    changed = [Passage(f"{passage.title}{SENT_BACK_CHANGED}", passage.text) for passage in back]
    return [*changed, *rest]


def _gist(passages: list[Passage] | tuple[Passage, ...]) -> list[tuple[str, str]]:
    found = [
        (passage.title.replace("Assistant", "Answer"), passage.text.strip())
        for passage in passages
        if passage.title not in _UNSEEN
    ]
    return [(title, text) for title, text in found if text or title != "Answer"]
