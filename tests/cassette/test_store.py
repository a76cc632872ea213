from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cassette.file.tape import ToolKey
from harness.cassette.file.view import read
from harness.cassette.format import StoredResult, seal
from harness.errors import CassetteError, ReplayMissError
from harness.schema.record import Json
from harness.schema.results import RecordMode, Verdict
from tests.cassette.cells import ORIGIN, ask, open_store

ROOT = Path(__file__).parents[2]


def record(path: Path, mode: RecordMode, live: str, *variants: str) -> dict[str, str]:
    """Record a two-turn trial of each variant, whose second turn depends on the variant."""
    found = {}
    with open_store(path, mode) as store:
        for variant in variants:
            session = store.session(variant)
            first = ask(session, "go", live=f"{live} first")
            found[variant] = ask(session, "go", first, variant, live=f"{live} {variant}")
            session.finish()
    return found


def replay(path: Path, variant: str) -> str:
    with open_store(path) as store:
        session = store.session(variant)
        first = ask(session, "go", live="never")
        return ask(session, "go", first, variant, live="never")


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.jsonl"


def test_variants_share_what_they_have_in_common(path: Path):
    with open_store(path, "new_episodes") as store:
        counts = []
        for variant in ("a", "b"):
            session = store.session(variant)
            first = ask(session, "go", live=f"first of {variant}")
            ask(session, "go", first, variant, live=variant)
            session.finish()
            counts.append((session.served, session.recorded))
    assert counts == [(0, 2), (1, 1)]
    view = read(path)
    root = next(iter(view.interactions.values()))
    assert root.variants == ("a", "b")
    assert [view.interactions[child].variants for child in root.children] == [("a",), ("b",)]


def test_an_interaction_stores_only_what_it_adds(path: Path):
    record(path, "new_episodes", "x", "a")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    added = [line["add"] for line in lines if line["kind"] == "interaction"]
    assert [[message["content"] for message in part] for part in added] == [
        ["go"],
        ["x first", "a"],
    ]
    assert kinds(path).count("parameters") == 1


def test_none_makes_no_file(path: Path):
    with open_store(path) as store, pytest.raises(ReplayMissError, match="no such file"):
        ask(store.session("a"), "go", live="never")
    assert list(path.parent.iterdir()) == []


def test_once_records_only_where_there_is_no_file(path: Path):
    record(path, "once", "x", "a")
    with open_store(path, "once") as store, pytest.raises(ReplayMissError):
        ask(store.session("a"), "something else", live="never")


def test_new_episodes_only_appends(path: Path):
    record(path, "new_episodes", "x", "a")
    before = path.read_bytes()
    record(path, "new_episodes", "y", "a")
    assert path.read_bytes() == before
    record(path, "new_episodes", "y", "a", "b")
    assert path.read_bytes().startswith(before)
    assert (replay(path, "a"), replay(path, "b")) == ("x a", "y b")


def test_a_new_recording_stands_beside_until_it_is_finished(path: Path):
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), "go", live="x")
        assert not path.exists()
        with (
            open_store(path) as reader,
            pytest.raises(ReplayMissError, match="unfinished recording"),
        ):
            ask(reader.session("a"), "go", live="never")
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


def test_an_exception_leaves_the_recording_to_go_on_with(path: Path):
    def interrupted() -> None:
        with open_store(path, "all") as store:
            ask(store.session("a"), "go", live="x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not path.exists()
    with open_store(path, "new_episodes") as store:
        assert ask(store.session("a"), "go", live="y") == "x"
    assert path.exists()


def test_all_records_anew_and_shares_within_the_run(path: Path):
    record(path, "new_episodes", "x", "a", "b")
    assert record(path, "all", "y", "a", "b") == {"a": "y a", "b": "y b"}
    assert (replay(path, "a"), replay(path, "b")) == ("y a", "y b")
    assert kinds(path).count("interaction") == 3


def test_all_keeps_the_branches_of_variants_that_were_not_run(path: Path):
    record(path, "new_episodes", "x", "a", "b", "c")
    record(path, "all", "y", "a")
    assert [replay(path, variant) for variant in "abc"] == ["y a", "x b", "x c"]
    record(path, "all", "z", "b")
    assert [replay(path, variant) for variant in "abc"] == ["y a", "z b", "x c"]
    view = read(path)
    assert sorted(view.trials) == ["a", "b", "c"]
    assert {user for entry in view.interactions.values() for user in entry.variants} == set("abc")


def test_what_all_carries_over_keeps_its_tools_and_verdicts(path: Path):
    verdict = Verdict(rewards={"reward": 1})
    with open_store(path, "new_episodes") as store:
        for variant in ("a", "b"):
            session = store.session(variant)
            ask(session, "go", live="x")
            session.record_verdict(f"transcript {variant}", "tests", verdict)
            session.finish()
    record(path, "all", "y", "a")
    with open_store(path) as store:
        session = store.session("b")
        assert session.verdict("transcript b", "tests") == verdict
        assert session.verdict("transcript a", "tests") is None
        assert session.verdict("transcript b", "other tests") is None


def test_all_leaves_out_the_tool_calls_of_a_trial_that_lost_its_answers(path: Path):
    record(path, "new_episodes", "x", "a")
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        ask(session, "go", live="never")
        key = ToolKey(session.last, 0, "shell", {}, "identity", 60)
        session.record_tool(key, StoredResult(content="r", status="ok", duration_s=0), None)
        session.finish(complete=False)
    record(path, "all", "y", "a")
    assert replay(path, "a") == "y a"
    assert "tool" not in kinds(path)


def test_all_loses_nothing_when_nothing_could_be_recorded(path: Path):
    record(path, "new_episodes", "x", "a")
    before = path.read_bytes()
    with open_store(path, "all") as store:
        store.session("a").finish()
    assert path.read_bytes() == before
    with open_store(path, "all") as store:
        session = store.session("a")
        ask(session, "go", live="y")
        session.finish(complete=False)
    assert replay(path, "a") == "x a"


def test_a_trial_of_which_nothing_was_recorded_is_told_as_such(
    path: Path, caplog: pytest.LogCaptureFixture
):
    with open_store(path, "once") as store:
        store.session("a").finish(complete=False)
    assert list(path.parent.iterdir()) == []
    said = "0.jsonl: not written: a trial is not complete, and nothing was recorded; record again"
    assert said in caplog.text


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_a_trial_that_is_not_complete_leaves_the_recording_to_go_on_with(
    path: Path, mode: RecordMode, caplog: pytest.LogCaptureFixture
):
    with open_store(path, mode) as store:
        for variant in ("a", "b"):
            session = store.session(variant)
            first = ask(session, "go", live="first")
            if variant == "a":
                session.finish(complete=False)
        ask(session, "go", first, "b", live="x b")
        session.finish()
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl.partial"]
    assert "0.jsonl: not written: a trial is not complete; what was recorded is in" in caplog.text
    with open_store(path, mode) as store:
        for variant in ("a", "b"):
            session = store.session(variant)
            assert ask(session, "go", live="never") == "first"
            ask(session, "go", first, variant, live="x a")
            session.finish()
    assert (replay(path, "a"), replay(path, "b")) == ("x a", "x b")
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


RECORDER = """
import os, signal, sys
from pathlib import Path
from tests.cassette.cells import ask, open_store
store = open_store(Path(sys.argv[1]), "all")
for variant in ("a", "b"):
    session = store.session(variant)
    first = ask(session, "go", live="first")
    ask(session, "go", first, variant, live=variant)
    if variant == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    session.finish()
"""


def test_a_killed_recording_is_finished_without_recording_again(path: Path):
    record(path, "new_episodes", "old", "a", "b", "c")
    killed = subprocess.run([sys.executable, "-c", RECORDER, str(path)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert replay(path, "a") == "old a"
    with open_store(path, "new_episodes") as store:
        for variant in ("a", "b"):
            session = store.session(variant)
            first = ask(session, "go", live="never")
            second = ask(session, "go", first, variant, live="never")
            third = ask(session, "go", first, variant, second, "more", live="third")
            assert (first, second, third) == ("first", variant, "third")
            assert (session.served, session.recorded) == (2, 1)
            session.finish()
    assert (replay(path, "a"), replay(path, "c")) == ("a", "old c")
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


def test_an_empty_recording_left_behind_hides_nothing(path: Path):
    record(path, "new_episodes", "x", "a")
    path.with_name("0.jsonl.partial").touch()
    assert record(path, "new_episodes", "y", "a") == {"a": "x a"}
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_cut_last_line_is_refused_on_replay_and_removed_on_recording(
    path: Path, cut: int, caplog: pytest.LogCaptureFixture
):
    record(path, "new_episodes", "x", "a")
    whole = path.read_bytes()
    lines = whole.count(b"\n")
    path.write_bytes(whole[: -1 - cut])
    with pytest.raises(CassetteError, match=rf"0\.jsonl:{lines}: .*cut.*new_episodes"):
        open_store(path)
    assert path.read_bytes() == whole[: -1 - cut]
    record(path, "new_episodes", "y", "a")
    assert f"0.jsonl:{lines}: the last line was cut" in caplog.text
    assert replay(path, "a") == "x a"
    assert kinds(path) == ["header", "parameters", "interaction", "interaction", "trial"]


def test_a_missing_last_line_end_is_no_damage(path: Path):
    record(path, "new_episodes", "x", "a")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert replay(path, "a") == "x a"
    record(path, "new_episodes", "y", "a", "b")
    assert path.read_bytes().startswith(whole)


def sealed(**line: Json) -> bytes:
    return seal(json.dumps(line, separators=(",", ":")).encode())


def interaction_of(path: Path) -> dict[str, Json]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found: dict[str, Json] = next(line for line in lines if line["kind"] == "interaction")
    del found["sum"]
    return found


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"not json\n", "damaged"),
        (sealed(kind="dance"), "dance"),
        (sealed(kind="verdict", id="v", transcript_digest="t", tests_digest="t", variant="a",
                verdict={}, extra=1), "extra"),
        (sealed(kind="parameters", id="p", endpoint="e", body=[]), "body"),
        (sealed(kind="header", format=1, suite="s", task="t", repeat=0, task_digest="d",
                versions={}), "second header"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["none", "once", "new_episodes", "all"])
def test_a_line_that_does_not_belong_is_an_error_in_every_mode(
    path: Path, line: bytes, problem: str, mode: RecordMode
):
    record(path, "new_episodes", "x", "a")
    path.write_bytes(path.read_bytes() + line)
    before = path.read_bytes()
    with pytest.raises(CassetteError, match=rf"0\.jsonl:6: .*{problem}"):
        open_store(path, mode)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


def test_an_interaction_without_its_parent_or_parameters_is_an_error(path: Path):
    record(path, "new_episodes", "x", "a")
    whole = path.read_bytes()
    for key in ("parent", "parameters"):
        line = {**interaction_of(path), "id": f"{'0' * 24}.0", key: "0" * 24}
        path.write_bytes(whole + sealed(**line))
        with pytest.raises(CassetteError, match=rf":6: {key} '0+' .* not in the file"):
            open_store(path, "new_episodes")


def test_a_file_that_is_replayed_is_never_added_to(path: Path):
    record(path, "new_episodes", "x", "a")
    before = path.read_bytes()
    with open_store(path) as store, pytest.raises(CassetteError, match="only replayed"):
        store.session("a").record_verdict("transcript", "tests", Verdict())
    assert path.read_bytes() == before


def test_a_line_is_not_recorded_twice(path: Path):
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        session.record_verdict("transcript", "tests", Verdict())
        with pytest.raises(CassetteError, match="verdict is recorded already"):
            session.record_verdict("transcript", "tests", Verdict(log="other"))


def test_two_lines_of_one_id_are_an_error(path: Path):
    record(path, "new_episodes", "x", "a")
    path.write_bytes(path.read_bytes() + sealed(**interaction_of(path)))
    with pytest.raises(CassetteError, match=r":6: an earlier line has the id '[0-9a-f]+\.0' too"):
        open_store(path)


def test_a_line_is_checked_in_full_when_it_is_served(path: Path):
    record(path, "new_episodes", "x", "a")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = sealed(**{**interaction_of(path), "surprise": 1})
    path.write_bytes(b"".join(lines))
    with open_store(path) as store:
        session = store.session("a")
        with pytest.raises(CassetteError, match=r"0\.jsonl:3: .*surprise"):
            ask(session, "go", live="never")
        with pytest.raises(CassetteError, match=r"0\.jsonl:3: .*surprise"):
            session.finish()
    with pytest.raises(CassetteError, match=r"0\.jsonl:3: .*surprise"):
        read(path)


@pytest.mark.parametrize("mode", ["none", "once", "new_episodes", "all"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (sealed(kind="header", format=2, future=True), "format 2"),
        (b'{"kind":"header","format":7}\n', "format 7"),
        (sealed(kind="dance"), "dance"),
        (sealed(kind="parameters", id="p", endpoint="e", body={}), "no header"),
        (b"interactions:\n- request: {}\n", "damaged"),
        (b'{"version": 1, "interactions": [1, 2, 3]}', "not a cassette"),
        (b"hello", "not a cassette"),
        (b'{"kind":"header","format":2,"suite":"s"', "not a cassette"),
        (sealed(kind="parameters", id="p", endpoint="e", body={})[:-1], "no header"),
    ],
)
def test_another_format_or_no_cassette_at_all_is_an_error(
    path: Path, mode: RecordMode, content: bytes, problem: str
):
    path.write_bytes(content)
    with pytest.raises(CassetteError, match=rf"0\.jsonl:1: .*{problem}.*; .*"):
        open_store(path, mode)
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


def test_an_unfinished_recording_with_a_cut_first_line_starts_over(path: Path):
    partial = path.with_name("0.jsonl.partial")
    partial.write_bytes(b'{"kind":"header","form')
    record(path, "new_episodes", "x", "a")
    assert replay(path, "a") == "x a"
    assert not partial.exists()


def test_an_empty_file_is_an_error_on_replay_and_begun_on_recording(path: Path):
    path.touch()
    with pytest.raises(CassetteError, match="empty"):
        open_store(path)
    record(path, "new_episodes", "x", "a")
    assert replay(path, "a") == "x a"


HOLDER = """
import sys
from pathlib import Path
from tests.cassette.cells import ask, open_store
with open_store(Path(sys.argv[1]), sys.argv[2]) as store:
    ask(store.session("a"), "something", live="x")
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("first", ["new_episodes", "all"])
@pytest.mark.parametrize("second", ["new_episodes", "all"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_second_writer_is_refused(
    path: Path, first: RecordMode, second: RecordMode, exists: bool
):
    if exists:
        record(path, "new_episodes", "x", "a")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), first],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(CassetteError, match="maybe this process"):
            open_store(path, second)
        if exists:
            assert replay(path, "a") == "x a"
        holder.communicate()
    assert holder.returncode == 0
    record(path, second, "y", "b")
    assert replay(path, "b") == "y b"


def test_a_full_disk_loses_nothing_and_stops_the_trial(path: Path):
    script = """
import resource, sys
from pathlib import Path
from harness.errors import InfrastructureError, ReplayMissError
from tests.cassette.cells import ask, open_store
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
store = open_store(path, "new_episodes")
session = store.session("b")
ask(session, "go", live="never")
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100,) * 2)
for expected in (InfrastructureError, ReplayMissError):
    try:
        ask(session, "something new", live="x" * 1000)
    except expected as error:
        assert "cannot be written" in str(error), error
    else:
        raise AssertionError("recorded on a full disk")
try:
    session.finish()
except InfrastructureError:
    print("told")
"""
    record(path, "new_episodes", "x", "a")
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("told\n", "")
    assert path.read_bytes() == before


def test_a_trial_of_another_version_of_the_task_says_so(path: Path):
    record(path, "new_episodes", "x", "a")
    for digest, words in (("t1", "has not changed"), ("t2", "has changed")):
        with (
            open_store(path, origin=replace(ORIGIN, task_digest=digest)) as store,
            pytest.raises(ReplayMissError, match=words),
        ):
            ask(store.session("a"), "gone", live="never")
