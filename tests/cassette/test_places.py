"""Files and their names: what a kill, a second writer or version control does to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import CassetteError, InfrastructureError
from harness.schema.results import RecordMode
from tests.cassette.cells import ask, open_store

ROOT = Path(__file__).parents[2]

# What the operating system is asked for tells the moment.
RECORDER = """
import os, signal, sys
from pathlib import Path
from tests.cassette.cells import ask, open_store
path, event, name = sys.argv[1:]

def watch(what, args):
    if what == event and args and str(args[0]) == name:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
with open_store(Path(path), "all") as store:
    session = store.session("a")
    first = ask(session, "go", live="new first")
    if not event:
        os.kill(os.getpid(), signal.SIGKILL)
    ask(session, "go", first, "a", live="new a")
    session.finish()
"""
AFTER_AN_ANSWER = ("", "")
BEFORE_THE_RENAME = ("os.rename", ".new")
AFTER_THE_RENAME = ("os.remove", ".partial")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.jsonl"


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


def say(path: Path, mode: RecordMode, variant: str, live: str = "never") -> str:
    with open_store(path, mode) as store:
        session = store.session(variant)
        first = ask(session, "go", live=f"{live} first")
        second = ask(session, "go", first, variant, live=f"{live} {variant}")
        session.finish()
    return second


def kill(path: Path, moment: tuple[str, str]) -> None:
    event, end = moment
    script = [sys.executable, "-c", RECORDER, str(path), event, f"{path}{end}"]
    assert subprocess.run(script, cwd=ROOT, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("mode", ["once", "new_episodes"])
@pytest.mark.parametrize(
    ("moment", "left"),
    [
        (AFTER_AN_ANSWER, ["0.jsonl", "0.jsonl.partial"]),
        (BEFORE_THE_RENAME, ["0.jsonl", "0.jsonl.new", "0.jsonl.partial"]),
        (AFTER_THE_RENAME, ["0.jsonl", "0.jsonl.partial"]),
    ],
)
def test_who_was_not_recorded_anew_keeps_what_it_had(
    path: Path, mode: RecordMode, moment: tuple[str, str], left: list[str]
):
    for variant in "ab":
        say(path, "new_episodes", variant, "old")
    kill(path, moment)
    assert names(path) == left
    before = [line for line in path.read_bytes().splitlines() if b'"variant":"b"' in line]
    assert say(path, mode, "b") == "old b"
    assert set(path.read_bytes().splitlines()) >= set(before)
    assert names(path) == ["0.jsonl"]
    assert say(path, "none", "a") == ("old a" if moment == AFTER_AN_ANSWER else "new a")
    assert say(path, "none", "b") == "old b"


def test_who_was_being_recorded_anew_goes_on_with_that(path: Path):
    for variant in "ab":
        say(path, "new_episodes", variant, "old")
    kill(path, AFTER_AN_ANSWER)
    assert say(path, "new_episodes", "a", "newer") == "newer a"
    assert say(path, "none", "b") == "old b"
    assert b"new first" in path.read_bytes()


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_a_new_file_that_has_both_names_loses_the_second(path: Path, mode: RecordMode):
    kill(path, AFTER_THE_RENAME)
    assert names(path) == ["0.jsonl", "0.jsonl.partial"]
    assert say(path, "none", "a") == "new a"
    say(path, mode, "a", "new")
    assert names(path) == ["0.jsonl"]
    assert say(path, "none", "a") == "new a"


SECOND = """
import sys
from pathlib import Path
from tests.cassette.cells import ask, open_store
path, mode = sys.argv[1:]

def watch(what, args):
    if what == "open" and str(args[0]) == f"{path}.partial":
        print("looked", flush=True)
        sys.stdin.readline()

sys.addaudithook(watch)
with open_store(Path(path), mode) as store:
    session = store.session("a")
    print(ask(session, "go", live="second"), flush=True)
    session.finish()
"""


@pytest.mark.parametrize("mode", ["once", "new_episodes"])
def test_a_file_that_another_has_finished_in_between_is_served(path: Path, mode: RecordMode):
    with subprocess.Popen(
        [sys.executable, "-c", SECOND, str(path), mode],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as second:  # fmt: skip
        assert second.stdout is not None
        assert second.stdout.readline() == "looked\n"
        say(path, "once", "a", "paid")
        before = path.read_bytes()
        said, _ = second.communicate("\n")
    assert (said, second.returncode) == ("paid first\n", 0)
    assert names(path) == ["0.jsonl"]
    # Going on is no other trial: where it may be recorded, it ends with a line of its own.
    assert path.read_bytes().startswith(before)


def test_a_file_that_appears_meanwhile_is_not_replaced(path: Path, tmp_path: Path):
    other = tmp_path / "other" / "0.jsonl"
    say(other, "once", "b", "theirs")

    def record() -> None:
        with open_store(path, "once") as store:
            session = store.session("a")
            ask(session, "go", "x", "a", live="mine")
            session.finish()
            path.write_bytes(other.read_bytes())

    with pytest.raises(CassetteError, match=r"0\.jsonl: somebody else made this file .*partial"):
        record()
    assert path.read_bytes() == other.read_bytes()
    assert path.with_name("0.jsonl.partial").exists()
    with open_store(path, "new_episodes") as store:
        assert ask(store.session("a"), "go", "x", "a", live="never") == "mine"
    assert say(path, "none", "b") == "theirs b"
    assert names(path) == ["0.jsonl", "other"]


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more\n")


@pytest.mark.parametrize("change", [removed, replaced, grown])
@pytest.mark.parametrize("exists", [False, True])
def test_nothing_is_recorded_where_nobody_would_find_it(
    path: Path, change: Callable[[Path], None], exists: bool
):
    if exists:
        say(path, "once", "a", "x")
    place = path if exists else path.with_name("0.jsonl.partial")
    named = rf"{place.name}: somebody else has (removed|replaced|written into) this file"
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        ask(session, "before", live="y")
        change(place)
        left = place.read_bytes() if place.exists() else None
        with pytest.raises(InfrastructureError, match=named):
            ask(session, "go on", live="y")
        with pytest.raises(InfrastructureError, match=named):
            session.finish()
        with pytest.raises(InfrastructureError, match=named):
            store.close()
    assert left == (place.read_bytes() if place.exists() else None)
    assert path.exists() == (exists and change is not removed)


def test_what_a_killed_change_left_goes_with_the_next_recording(path: Path):
    say(path, "once", "a", "x")
    path.with_name("0.jsonl.new").write_text("half")
    say(path, "new_episodes", "b", "y")
    assert names(path) == ["0.jsonl"]


def test_a_file_that_was_replaced_is_not_replaced_by_what_was_made_of_the_old_one(path: Path):
    say(path, "once", "a", "x")
    store = open_store(path, "all")
    session = store.session("a")
    ask(session, "go", live="y")
    session.finish()
    replaced(path)
    before = path.read_bytes()
    with pytest.raises(InfrastructureError, match="somebody else has replaced this file"):
        store.close()
    assert path.read_bytes() == before
    assert path.with_name("0.jsonl.partial").exists()


def test_what_is_only_served_may_change(path: Path):
    say(path, "once", "a", "x")
    with open_store(path, "new_episodes") as store:
        assert ask(store.session("a"), "go", live="never") == "x first"
        replaced(path)


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_a_link_stays_a_link(path: Path, tmp_path: Path, mode: RecordMode):
    real = tmp_path / "real" / "0.jsonl"
    real.parent.mkdir()
    path.symlink_to(real)
    say(path, mode, "a", "first")
    say(path, "all", "a", "second")
    assert path.is_symlink()
    assert say(real, "none", "a") == "second a"
    assert os.listdir(real.parent) == ["0.jsonl"]
