"""Real conversations, where there are any: `HARNESS_DATA` names their folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import harness.cassette
from tests.cassette.convert.samples import answers, replay
from tests.cassette.convert.test_conversations import exported, imported


def folder() -> Path:
    name = os.environ.get("HARNESS_DATA")
    if not name:
        pytest.skip("HARNESS_DATA does not name the folder of real conversations")
    return Path(name)


def messages_in(path: Path) -> list[dict[str, Any]]:
    value = json.loads(path.read_bytes())
    if isinstance(value, dict):
        return list(value["messages"])
    return [
        {"role": role, "content": episode[key]}
        for episode in value
        for role, key in (("user", "prompt"), ("assistant", "response"))
    ]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("conversations/haiku-4.5__*.json", 6),
        ("trials/*/agent/trajectory.json", 1),
        ("trials/*/conversation.json", 1),
    ],
)
def test_real_conversations_replay_turn_for_turn_and_come_out_the_same(
    pattern: str, count: int, tmp_path: Path
):
    sources = sorted(folder().glob(pattern))
    assert len(sources) == count
    for source in sources:
        messages = messages_in(source)
        [cassette] = imported(source, tmp_path)
        with harness.cassette.use(cassette) as session:
            assert replay(messages) == answers(messages)
        assert session.served == len(messages) // 2
        assert [one for one in session.request_differences if "message" in one.cause] == []
        [back] = exported(cassette)
        assert json.dumps(back["messages"]) == json.dumps(messages)
