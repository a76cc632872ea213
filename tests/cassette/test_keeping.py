"""Which answers are kept, and what becomes of an error that a retry may get over."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.cassette.file.view import read
from harness.cassette.format import StoredResponse
from harness.cassette.replay.session import Session
from harness.cassette.request.canonical import CanonicalRequest
from harness.cassette.request.rules import Rules
from harness.errors import ReplayMissError
from harness.schema.recording import RecordingRules
from tests.cassette.cells import answer, ask, open_store, request

WAITS = {
    "content-type": "text/plain",
    "retry-after": "30",
    "retry-after-ms": "9",
    "x-should-retry": "true",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.jsonl"


def error(status: int, text: str = "busy") -> StoredResponse:
    return StoredResponse(status=status, headers=WAITS, type="text", body=text)


def live(session: Session, *answers: StoredResponse, ask: str = "go") -> None:
    """One request made again and again, as an SDK does it."""
    for one in answers:
        assert session.claim(request(ask)) is None
        session.append(request(ask), one, latency_s=1)


def statuses(path: Path) -> list[int]:
    return [view.line.response.status for view in read(path).interactions.values()]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_an_error_that_was_got_over_is_dropped(path: Path, status: int):
    with open_store(path, "all") as store:
        session = store.session("a")
        live(session, error(status), error(status), answer("at last"))
        assert (session.recorded, session.elapsed_s) == (1, 1)
        session.finish()
    assert statuses(path) == [200]
    with open_store(path) as store:
        found = store.session("a").claim(request("go"))
        assert found is not None
        assert found.response == answer("at last")


def test_an_error_that_was_never_got_over_is_kept_once_and_answers_every_retry(path: Path):
    with open_store(path, "all") as store:
        session = store.session("a")
        live(session, error(503, "first"), error(429, "last"))
        assert path.with_name("0.jsonl.partial").stat().st_size == 0
        live(session, answer("other"), ask="something else")
        session.finish()
    assert statuses(path) == [200, 429]
    with open_store(path) as store:
        session = store.session("a")
        for _ in range(4):
            found = session.claim(request("go"))
            assert found is not None
            assert (found.repeats, found.response.status, found.response.body) == (
                True,
                429,
                "last",
            )
            assert found.response.headers == {
                "content-type": "text/plain",
                "x-should-retry": "false",
            }
        assert session.last is None
        assert session.elapsed_s == 0
        assert session.claim(request("something else")) is not None
        with pytest.raises(ReplayMissError):
            session.claim(request("more"))


def test_an_error_after_an_answer_to_the_same_request_comes_after_it(path: Path):
    with open_store(path, "all") as store:
        session = store.session("a")
        live(session, answer("once"), error(500), error(500))
        session.finish()
    with open_store(path) as store:
        session = store.session("a")
        found = [session.claim(request("go")) for _ in range(4)]
        assert [line and line.response.status for line in found] == [200, 500, 500, 500]


def test_a_trial_that_is_not_complete_keeps_no_held_error(path: Path):
    with open_store(path, "all") as store:
        session = store.session("a")
        live(session, answer("other"), ask="something else")
        live(session, error(500))
        session.finish(complete=False)
    partial = path.with_name("0.jsonl.partial")
    lines = [json.loads(line) for line in partial.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["header", "parameters", "interaction"]


@pytest.mark.parametrize("status", [401, 403, 404, 405, 407])
def test_what_a_key_or_an_address_is_to_blame_for_is_never_recorded(path: Path, status: int):
    with open_store(path, "all", rules=Rules(RecordingRules(keep_errors=True))) as store:
        session = store.session("a")
        live(session, error(status))
        assert session.unanswered
        session.finish()
    assert not path.exists()


@pytest.mark.parametrize("status", [200, 201, 302, 400, 413, 422])
def test_every_other_answer_is_on_disk_at_once(path: Path, status: int):
    with open_store(path, "all") as store:
        session = store.session("a")
        live(session, error(status))
        assert not session.unanswered
        assert statuses(path.with_name("0.jsonl.partial")) == [status]


def test_errors_are_kept_in_their_order_where_the_suite_asks_for_it(path: Path):
    with open_store(path, "all", rules=Rules(RecordingRules(keep_errors=True))) as store:
        session = store.session("a")
        live(session, error(429), error(503), answer("at last"))
        session.finish()
    with open_store(path) as store:
        session = store.session("a")
        found = [session.claim(request("go")) for _ in range(3)]
        assert [line and line.response.status for line in found] == [429, 503, 200]
        assert found[0] is not None
        assert found[0].response.headers == WAITS


def test_an_error_that_is_recorded_is_asked_for_again_wherever_something_may_be_recorded(
    path: Path,
):
    with open_store(path, "new_episodes") as store:
        for variant in "ab":
            session = store.session(variant)
            live(session, error(500))
            session.finish()
    before = path.read_bytes()
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        live(session, error(500))
        session.finish()
    assert path.read_bytes() == before
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        live(session, answer("well"))
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        assert served(session) == 200
        assert session.claim(request("go")) is None
        session.append(request("go"), answer("and again"), latency_s=1)
        session.finish()
    assert statuses(path) == [500, 200, 200]
    assert path.read_bytes().startswith(before)
    with open_store(path) as store:
        assert served(store.session("a")) == 200
        assert served(store.session("b")) == 500
        assert served(store.session("new")) == 200


def served(session: Session) -> int:
    found = session.claim(request("go"))
    assert found is not None
    return found.response.status


@pytest.mark.parametrize("status", [503, 401, None])
def test_what_got_no_answer_does_not_replace_one(
    path: Path, status: int | None, caplog: pytest.LogCaptureFixture
):
    with open_store(path, "all") as store:
        session = store.session("a")
        live(session, answer("old"))
        session.finish()
    before = path.read_bytes()
    for asked, text in ((["new"], "go"), ([], "further")):
        caplog.clear()
        with open_store(path, "all") as store:
            session = store.session("a")
            for ask in asked:
                live(session, answer(ask), ask=ask)
            assert session.claim(request(text)) is None
            if status is not None:
                session.append(request(text), error(status), latency_s=1)
            session.finish()
        assert path.read_bytes() == before
        assert path.with_name("0.jsonl.partial").exists()
        assert f"{path}: " in caplog.text
        assert "no answer" in caplog.text if status is None else f"HTTP {status}" in caplog.text
    with open_store(path, "all") as store:
        session = store.session("a")
        assert session.claim(request("new")) is not None
        live(session, error(500), answer("well"))
        session.finish()
    assert statuses(path) == [200, 200]
    assert not path.with_name("0.jsonl.partial").exists()


def replayed(path: Path, variant: str, *asks: CanonicalRequest) -> list[int]:
    with open_store(path) as store:
        session = store.session(variant)
        found = [session.claim(one) for one in asks]
    return [line.response.status for line in found if line is not None]


def test_an_error_that_was_given_up_is_served_in_its_place(path: Path):
    with open_store(path, "once") as store:
        session = store.session("a")
        live(session, error(429), error(429))
        live(session, answer("other"), ask="something else")
        live(session, answer("at last"))
        assert session.elapsed_s == 2
        session.finish()
    asks = [request("go"), request("go"), request("something else"), request("go")]
    assert replayed(path, "a", *asks) == [429, 429, 200, 200]
    with open_store(path) as store:
        session = store.session("a")
        found = session.claim(request("go"))
        assert found is not None
        assert found.response.headers == {"content-type": "text/plain", "x-should-retry": "true"}
        assert (session.last, session.elapsed_s) == (None, 0)


def test_an_error_between_answers_to_the_same_request_is_served_in_its_place(path: Path):
    with open_store(path, "once") as store:
        session = store.session("a")
        live(session, answer("one"), error(500), answer("two"))
        session.finish()
    assert replayed(path, "a", *[request("go")] * 3) == [200, 500, 200]


def test_an_error_that_is_no_models_is_served_in_its_place(path: Path):
    poll = CanonicalRequest.of("http", {"url": "http://host/job"}, [], is_model_call=False)
    with open_store(path, "once") as store:
        session = store.session("a")
        for one in (error(503), answer("done"), answer("done")):
            assert session.claim(poll) is None
            session.append(poll, one, latency_s=1)
        session.finish()
    assert replayed(path, "a", poll, poll, poll) == [503, 200, 200]


def test_what_others_ask_meanwhile_gives_no_error_up(path: Path):
    def ask_something(number: int) -> None:
        live(session, answer("other"), ask=f"something {number}")

    with open_store(path, "once") as store, ThreadPoolExecutor(1) as other:
        session = store.session("a")
        live(session, error(429))
        other.submit(ask_something, 1).result()
        live(session, error(429))
        other.submit(ask_something, 2).result()
        live(session, answer("at last"))
        session.finish()
    assert statuses(path) == [200, 200, 200]


def test_a_variant_that_asked_less_often_is_not_given_anothers_answer(path: Path):
    with open_store(path, "once") as store:
        for variant, count in (("a", 1), ("b", 2)):
            session = store.session(variant)
            for number in range(count):
                ask(session, "go", live=f"{variant}{number}")
            session.finish()
    with open_store(path) as store:
        for variant in ("b", "new"):
            session = store.session(variant)
            assert [ask(session, "go", live="never") for _ in range(2)] == ["a0", "b1"]
        session = store.session("a")
        assert ask(session, "go", live="never") == "a0"
        with pytest.raises(ReplayMissError, match="made more often than it was recorded"):
            ask(session, "go", live="never")
        assert session.misses[0].cause == "repetition"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        assert [ask(session, "go", live="mine") for _ in range(2)] == ["a0", "mine"]
        session.finish()
    for variant, second in (("a", "mine"), ("b", "b1")):
        with open_store(path) as store:
            session = store.session(variant)
            assert [ask(session, "go", live="never") for _ in range(2)] == ["a0", second]
