"""What real models answered in Terminus 2's protocol, and what they were told then."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.loop.text_protocols.terminus2 import Terminus2Protocol
from harness.schema.messages import ToolSpec

DATA = os.environ.get("HARNESS_DATA")
TOOLS = [
    ToolSpec(name=name, description=name, parameters={}) for name in ("keystrokes", "load_skill")
]

pytestmark = pytest.mark.skipif(DATA is None, reason="HARNESS_DATA names no folder of real data")


def turns() -> Iterator[tuple[str, str, str | None]]:
    """Where an answer stands, the answer, and what the model was told after it."""
    files = [*Path(DATA or "", "conversations").glob("haiku*.json")]
    files += Path(DATA or "", "trials").glob("*/conversation.json")
    assert files
    for file in files:
        messages = [message["content"] for message in json.loads(file.read_text())["messages"]]
        for at in range(1, len(messages), 2):
            told = messages[at + 1] if at + 1 < len(messages) else None
            yield f"{file.name}, message {at}", messages[at], told


def test_answers_are_read_as_the_real_agent_read_them() -> None:
    kinds = {"load_skill": 0, "errors": 0, "commands": 0, "task_complete": 0}
    for where, text, told in turns():
        parsed = Terminus2Protocol().parse(text, TOOLS)
        names = [name for name, _ in parsed.calls]
        if told is None:
            kind = "task_complete"
            assert names[-1] == kind, where
        elif told.startswith("Loaded skill: "):
            kind = "load_skill"
            loaded = told.removeprefix("Loaded skill: ").partition("\n")[0]
            assert parsed.calls == ((kind, json.dumps({"name": loaded})),), where
        elif told.startswith("Previous response had parsing errors:"):
            kind = "errors"
            assert parsed.notes.startswith("Previous response had parsing errors:"), where
        else:
            kind = "commands"
            assert set(names) == {"keystrokes"}, where
            assert "errors" not in parsed.notes, where
        kinds[kind] += 1
    assert all(kinds.values()), kinds
