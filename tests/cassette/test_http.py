from __future__ import annotations

from pathlib import Path

import anthropic
import openai
import pytest

from harness.cassette.http import use
from tests.cassette.loopback import (
    DIALECTS,
    ask_anthropic,
    ask_openai,
    open_store,
    upstream,
    user,
)


@pytest.mark.parametrize("ask", [ask_openai, ask_anthropic])
def test_what_was_recorded_replays_with_the_server_gone(tmp_path: Path, ask):
    path = tmp_path / "suite" / "task" / "0.jsonl"
    with upstream() as server, open_store(path, "new_episodes") as store:
        session = store.session("baseline")
        with use(session, DIALECTS):
            recorded = [ask(server.port, user("one")), ask(server.port, user("two"))]
        session.finish()
        assert session.recorded == 2
    with open_store(path) as store:
        session = store.session("baseline")
        with use(session, DIALECTS):
            replayed = [ask(1, user("one")), ask(1, user("two"))]
        assert session.served == 2
    assert replayed == recorded == ["answer 1", "answer 2"]


@pytest.mark.parametrize("ask", [ask_openai, ask_anthropic])
def test_a_miss_is_answered_at_once_and_remembered(tmp_path: Path, ask):
    with open_store(tmp_path / "0.jsonl") as store:
        session = store.session("baseline")
        with (
            use(session, DIALECTS),
            pytest.raises((openai.BadRequestError, anthropic.BadRequestError)),
        ):
            ask(1, user("one"), retries=5)
    assert len(session.misses) == 1
