"""Whatever happens to a file: every answer is the right one, or an error names the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.cassette.file.tape import ToolKey
from harness.cassette.format import StoredResult
from harness.cassette.replay.session import Session
from harness.errors import CassetteError, ReplayMissError
from harness.schema.results import RecordMode, Verdict
from tests.cassette.cells import ask, open_store

NAMES_THE_LINE = re.compile(r"/0\.jsonl:[1-9][0-9]*: ")


def trial(session: Session, live: str) -> list[object]:
    """Two model calls, a tool call and a verdict; live answers are those of one recording."""
    first = ask(session, "go", live=f"{live} first")
    key = ToolKey(session.last, 0, "shell", {"command": "ls"}, "identity", 60)
    result = session.tool_result(key)
    if result is None:
        result = StoredResult(content=f"{live} files", status="ok", duration_s=0)
        session.record_tool(key, result, "bench")
    second = ask(session, "go", first, session.variant, live=f"{live} second")
    said = (first + result.content + second, "tests")
    verdict = session.verdict(*said)
    if verdict is None and session.recording:
        verdict = session.record_verdict(*said, Verdict(rewards={"reward": 1}, log=live))
    session.finish()
    return [first, result, second, verdict]


def replay(path: Path) -> dict[str, list[object]]:
    with open_store(path) as store:
        return {variant: trial(store.session(variant), "never") for variant in "ab"}


@cache
def whole() -> tuple[bytes, dict[str, list[object]]]:
    """A file in which two variants have different answers to the same request."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "0.jsonl"
        modes: tuple[tuple[RecordMode, str], ...] = (("new_episodes", "ab"), ("all", "a"))
        for mode, variants in modes:
            with open_store(path, mode) as store:
                for variant in variants:
                    trial(store.session(variant), mode)
        answers = replay(path)
        assert answers["a"][0] != answers["b"][0]
        assert None not in (*answers["a"], *answers["b"])
        return path.read_bytes(), answers


def deleted(data: bytes, at: int, _: int) -> bytes:
    return data[:at] + data[at + 1 :]


def replaced(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


def inserted(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at:]


def cut(data: bytes, at: int, _: int) -> bytes:
    return data[:at]


def check(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    found: object
    try:
        found = replay(path)
    except CassetteError as error:
        found = NAMES_THE_LINE.search(str(error))
    assert found
    assert found == whole()[1] or isinstance(found, re.Match)


@settings(max_examples=150, deadline=None)
@given(
    edit=st.sampled_from([deleted, replaced, inserted, cut]),
    at=st.integers(0, 10_000),
    byte=st.one_of(st.sampled_from(b'\n0123.,"{}'), st.integers(0, 255)),
)
@example(edit=inserted, at=0, byte=ord("\n"))
@example(edit=cut, at=0, byte=0)
def test_after_any_edit_every_answer_is_right_or_the_line_is_named(
    tmp_path_factory: pytest.TempPathFactory,
    edit: Callable[[bytes, int, int], bytes],
    at: int,
    byte: int,
):
    data, _ = whole()
    if edit is cut:
        # Where a line ends, a cut leaves a whole file that holds less: its misses are true.
        at = min(at, len(data))
        if data[:at].endswith(b"\n") or data[at : at + 1] == b"\n":
            return
    check(tmp_path_factory.mktemp("edited") / "0.jsonl", edit(data, at % len(data), byte))


@pytest.mark.parametrize("kind", ["interaction", "tool", "verdict", "trial"])
def test_a_damaged_line_is_never_called_missing(tmp_path: Path, kind: str):
    data, _ = whole()
    path = tmp_path / "0.jsonl"
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        found = re.match(rb'\{"kind":"%s","(?:id|variant)":"' % kind.encode(), line)
        if found is not None:
            spoilt = line[: found.end()] + b"0" + line[found.end() + 1 :]
            path.write_bytes(b"".join([*lines[: number - 1], spoilt, *lines[number:]]))
            with pytest.raises(CassetteError, match=rf"0\.jsonl:{number}: the line is damaged"):
                replay(path)


@pytest.mark.parametrize("mark", [b'"trial","variant":"', b'"interaction","id":"'])
def test_a_byte_that_is_no_text_is_damage_like_any_other(tmp_path: Path, mark: bytes):
    data, _ = whole()
    path = tmp_path / "0.jsonl"
    at = data.index(mark) + len(mark)
    path.write_bytes(replaced(data, at, 0xE4))
    modes: tuple[RecordMode, ...] = ("none", "new_episodes", "all")
    for mode in modes:
        with pytest.raises(CassetteError, match=r"0\.jsonl:[0-9]+: the line is damaged"):
            open_store(path, mode)


def test_a_miss_in_a_whole_file_is_a_miss(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    path.write_bytes(whole()[0])
    with open_store(path) as store:
        session = store.session("a")
        assert session.verdict("other", "tests") is None
        with pytest.raises(ReplayMissError):
            ask(session, "something else", live="never")


@pytest.mark.parametrize("mode", ["new_episodes", "all"])
def test_damage_is_found_before_anything_is_recorded(tmp_path: Path, mode: RecordMode):
    path = tmp_path / "0.jsonl"
    data, _ = whole()
    for number, line in enumerate(data.splitlines(), start=1):
        at = data.index(line) + len(line) // 2
        spoilt = replaced(data, at, data[at] ^ 1)
        path.write_bytes(spoilt)
        with pytest.raises(CassetteError, match=rf"0\.jsonl:{number}: "):
            open_store(path, mode)
        assert path.read_bytes() == spoilt
        assert [entry.name for entry in tmp_path.iterdir()] == ["0.jsonl"]


def test_a_damaged_last_line_end_does_not_cost_the_line(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    spoilt = whole()[0][:-1] + b"x"
    path.write_bytes(spoilt)
    modes: tuple[RecordMode, ...] = ("none", "new_episodes", "all")
    for mode in modes:
        with pytest.raises(CassetteError, match="the line is damaged"):
            open_store(path, mode)
    assert path.read_bytes() == spoilt
