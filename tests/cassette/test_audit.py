from __future__ import annotations

import base64
import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.care.audit import audit
from harness.cassette.care.cells import Expected
from harness.cassette.file.lines import compact
from harness.cassette.format import StoredResponse, seal
from harness.cassette.request.canonical import digest
from harness.redaction import Redactor
from tests.cassette.recordings import drop, edit, lines, record, record_judged

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-hunter2-hunter2"
KEY = "sk-proj-" + "a1B2c3D4e5" * 5


def found(path: Path, cells=None, **secrets: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.kind, one.lines) for one in audit(path, Redactor(secrets), cells)]


def texts(path: Path, cells=None) -> str:
    return "\n".join(one.text for one in audit(path, Redactor({}), cells))


def sealed_again(path: Path) -> None:
    """Seal every line as it is, whatever it says."""
    raw = [{k: v for k, v in line.items() if k != "sum"} for line in lines(path)]
    path.write_bytes(b"".join(seal(compact(value)) for value in raw))


def cell(*variants: str, digest: str = "t1", repeat: int = 0):
    return {("basics", "count", repeat): Expected(digest, frozenset(variants))}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "basics" / "count" / "0.jsonl"


def test_a_good_cassette_is_healthy(place: Path):
    record_judged(place)
    record(place, b=["go", "x", "on", "y"])
    assert found(place) == []
    assert found(place, cell("a", "b")) == []


@given(st.data())
def test_a_changed_byte_is_found_wherever_it_is(whole: bytes, data: st.DataObject):
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.jsonl"
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        assert [one for one in audit(path, Redactor({})) if one.kind == "damaged"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return record_judged(tmp_path_factory.mktemp("whole") / "0.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "number", "what"),
    [
        ('"body":{"model":"tiny"', '"body":{"model":"mini"', 2, "its id is not that of what"),
        ('"content":"go"', '"content":"stop"', 3, "its chain is not that of what"),
        ('"command":"ls"', '"command":"rm"', 4, "its id is not that of what"),
        ('"transcript_digest":"transcript"', '"transcript_digest":"t"', 6, "its id is not that"),
    ],
)
def test_ids_that_are_not_those_of_the_content_are_found(
    place: Path, old: str, new: str, number: int, what: str
):
    record_judged(place)
    edit(place, old, new)
    sealed_again(place)
    (one,) = audit(place, Redactor({}))
    assert (one.kind, one.lines) == ("damaged", (number,))
    assert what in one.text


def test_what_is_no_cassette_is_damaged(place: Path):
    place.parent.mkdir(parents=True)
    for content, what in (
        (b"", "the file is empty"),
        (b"hello\n", "not JSON"),
        (b'{"kind":"header","format":99}\n', "format 99 is not known here"),
        (b"<<<<<<< HEAD\n", "the mark of a merge that is not finished"),
    ):
        place.write_bytes(content)
        (one,) = audit(place, Redactor({}))
        assert (one.kind, one.lines) == ("damaged", (1,))
        assert what in one.text


def test_a_cut_last_line_is_damaged(place: Path):
    whole = record_judged(place).read_bytes()
    place.write_bytes(whole[:-20])
    assert found(place) == [("damaged", (7,))]
    assert texts(place) == "the last line is cut"


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (2, "its set of parameters"),
        (3, "its parent"),
        (4, "its tool call"),
        (5, "its interaction"),
        (6, "its verdict"),
    ],
)
def test_lines_that_name_what_is_not_there_are_orphaned(place: Path, gone: int, left: str):
    drop(record_judged(place), gone)
    orphaned = [one for one in audit(place, Redactor({})) if one.kind == "orphaned"]
    assert any(one.text.startswith(left) for one in orphaned), orphaned


def test_what_a_later_trial_of_a_variant_does_not_use_is_unplayed(place: Path):
    record(place, a=["go", "x", "on", "y"])
    record(place, a=["go", "x", "left", "z"])
    record(place, b=["hi", "there"])
    assert found(place) == [("unplayed", (4,))]


def test_what_a_used_line_continues_is_not_unplayed(place: Path):
    record(place, a=["go", "x", "on", "y"])
    record(place, b=["go", "x"], settings={"b": {"temperature": 1}})
    record(place, a=["stop", "z"])
    assert [line.get("add") for line in lines(place)][6] == [], "b continues a's first request"
    assert found(place) == [("unplayed", (4,))]


def test_a_recording_that_was_interrupted_is_unfinished_not_unplayed(place: Path):
    record(place, a=["go", "x"])
    record(place, b=["go", "x", "on", "y"], unfinished=("b",))
    assert found(place) == [("unfinished", (5,))]
    assert "variant 'b' was not finished" in texts(place)


def test_an_answer_that_stands_elsewhere_too_and_is_not_used_is_a_duplicate(place: Path):
    record(place, a=["go", "x"], b=["hi", "there"])
    raw = place.read_bytes().splitlines(keepends=True)
    again = {k: v for k, v in lines(place)[2].items() if k != "sum"}
    again["id"] += ".1"
    place.write_bytes(b"".join([*raw[:3], seal(compact(again)), *raw[3:]]))
    assert found(place) == [("duplicate", (4,))]


def test_a_line_that_stands_twice_is_a_duplicate(place: Path):
    raw = record(place, a=["go", "x"]).read_bytes().splitlines(keepends=True)
    place.write_bytes(b"".join([*raw[:3], *raw[2:]]))
    assert ("duplicate", (4,)) in found(place)


def test_a_suite_tells_what_is_stale(place: Path):
    record(place, a=["go", "x"], b=["go", "y", "on", "z"])
    assert found(place, cell("a", digest="t2")) == [("stale", (5, 6)), ("stale", (4,))]
    assert "variant 'b' is not in the suite" in texts(place, cell("a"))
    assert "the task has changed since 'a', 'b' were recorded" in texts(
        place, cell("a", "b", digest="t2")
    )


def test_a_variant_that_is_gone_is_stale_with_its_settings(place: Path):
    record(place, a=["go", "x"])
    record(place, b=["go", "y"], settings={"b": {"temperature": 1}})
    assert found(place, cell("a")) == [("stale", (5, 6, 7))]


def test_a_suite_tells_what_is_orphaned(place: Path):
    record(place, a=["go", "x"])
    assert found(place, cell("a", repeat=1)) == [("orphaned", ())]
    assert "no task 'count' with repeat 0" in texts(place, cell("a", repeat=1))
    other = {("other", "count", 0): Expected("t9", frozenset())}
    assert found(place, other) == [], "a file of another suite is judged by itself"
    moved = place.rename(place.parents[2] / "0.jsonl")
    assert found(moved, cell("a")) == [("orphaned", ())]
    assert "it belongs to basics/count/0.jsonl, and nobody looks" in texts(moved, cell("a"))


def test_a_recording_under_another_name_is_stale(place: Path):
    """As where it was copied to have one more repeat."""
    record(place, a=["go", "x"])
    copied = place.rename(place.with_name("1.jsonl"))
    assert found(copied, cell("a", repeat=1)) == [("stale", (1,))]
    assert texts(copied, cell("a", repeat=1)) == "it was recorded as basics/count/0.jsonl"


def test_secrets_are_found_wherever_they_were_written(place: Path, tmp_path: Path):
    encoded = base64.b64encode(f"\x00\xff {KEY}".encode("latin-1")).decode()
    pieces = [
        {"data": {"choices": [{"delta": {"content": part}}]}} for part in (KEY[:20], KEY[20:])
    ]
    answers = {
        2: StoredResponse(status=200, type="text", body=f"the key is {KEY}"),
        3: StoredResponse(status=200, type="base64", body=encoded),
        4: StoredResponse(status=200, type="events", body=pieces),
        5: StoredResponse(status=200, type="text", body=f"value {SECRET}"),
        6: StoredResponse(status=200, type="text", body="nothing"),
        7: StoredResponse(
            status=200,
            headers={"content-type": "text/event-stream"},
            type="text",
            body=f"x: y\ndata: {KEY[:20]}\n\ndata: {KEY[20:]}\n\n",
        ),
        8: StoredResponse(status=200, type="base64", body="no base64"),
    }
    record(place, a=["go", "x"])
    raw = place.read_bytes().splitlines(keepends=True)
    base = {k: v for k, v in lines(place)[2].items() if k != "sum"}
    planted = [
        seal(compact({**base, "id": f"{base['id']}.{n}", "response": answer.model_dump()}))
        for n, answer in answers.items()
    ]
    place.write_bytes(b"".join([*raw[:3], *planted, *raw[3:]]))
    leaking = [
        one for one in audit(place, Redactor({"SOME_API_KEY": SECRET})) if one.kind == "leaking"
    ]
    assert [one.lines for one in leaking] == [(4,), (5,), (6,), (7,), (9,)]
    assert "SOME_API_KEY" in leaking[3].text
    told = "".join(one.model_dump_json() for one in leaking)
    assert KEY not in told
    assert SECRET not in told


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_secret_in_the_bytes_of_a_request_is_found(place: Path, pack: Callable[[bytes], bytes]):
    record(place, a=["go", "x"])
    raw = place.read_bytes().splitlines(keepends=True)
    encoded = base64.b64encode(pack(b"\x00\xff " + KEY.encode())).decode()
    endpoint, body = "POST http://a/x", {"base64": encoded}
    line: Any = {
        "kind": "parameters", "id": digest([endpoint, {**body}])[:24],
        "endpoint": endpoint, "body": body,
    }  # fmt: skip
    place.write_bytes(b"".join([*raw, seal(compact(line))]))
    assert [one for one in found(place) if one[0] == "leaking"] == [("leaking", (len(raw) + 1,))]


def test_a_cassette_that_holds_nothing_is_no_healthy_one(place: Path):
    record(place, a=["go", "x"])
    place.write_bytes(place.read_bytes().splitlines(keepends=True)[0])
    assert found(place) == [("unfinished", ())]
    assert texts(place) == "it holds nothing; record, or remove it"


def test_the_shipped_recordings_are_healthy():
    files = sorted((ROOT / "cassettes").rglob("*.jsonl"))
    assert files
    assert [one for file in files for one in audit(file, Redactor({}))] == []
