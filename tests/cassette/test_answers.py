"""What is given to a trial from elsewhere, and what stands before its session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cassette.format import InteractionLine
from harness.cassette.replay.answers import Before
from harness.errors import ReplayMissError
from tests.cassette.cells import answer, ask, open_store, request

SENT = "5e47" * 6
"""Digest of a call as it is sent."""


def recorded(path: Path) -> InteractionLine:
    """A line of another cassette."""
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        session.append(request("hello"), answer("x"), latency_s=2)
        line = session._tape.interaction(f"{request('hello').digest}.0")
        session.finish()
    return line


def test_an_answer_that_is_given_counts_as_if_the_trial_had_found_it(tmp_path: Path):
    line = recorded(tmp_path / "0.jsonl")
    with open_store(tmp_path / "0.jsonl") as store:
        found, given = store.session("a"), store.session("a")
        assert found.claim(request("hello")) == line
        given.give(line)
        for session in (found, given):
            assert (session.served, session.last, session.elapsed_s) == (1, line.id, 2)
            # It has been asked once: there is no second answer.
            with pytest.raises(ReplayMissError):
                session.claim(request("hello"))
        with pytest.raises(ReplayMissError):
            given.give(line)


def test_an_error_that_was_never_got_over_takes_no_time_wherever_it_comes_from(tmp_path: Path):
    line = recorded(tmp_path / "0.jsonl")
    failed = line.response.model_copy(update={"status": 503})
    error = line.model_copy(update={"response": failed, "repeats": True})
    with open_store(tmp_path / "1.jsonl", "new_episodes") as store:
        session = store.session("a")
        session.give(error)
        assert (session.served, session.last, session.elapsed_s) == (1, None, 0)


def test_a_recorded_trial_names_no_answer_of_another_cassette(tmp_path: Path):
    line = recorded(tmp_path / "0.jsonl")
    path = tmp_path / "1.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        session.give(line)
        ask(session, "hello", "x", "go on", live="y")
        session.finish()
    assert f'"interactions":["{request("hello", "x", "go on").digest}.0"]' in path.read_text()


def test_what_stands_before_a_session_sees_every_request_itself(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    call = replace(request("hello"), sent=SENT)
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        session.append(call, answer("x"), latency_s=0)
        session.finish()
    with open_store(path) as store:
        session = store.session("a")
        before = Before(session)
        assert before.claim_as_sent(SENT) is None
        assert before.claim(call) is not None
        assert store.session("a").claim_as_sent(SENT) is not None
