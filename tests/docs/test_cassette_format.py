"""The reader that docs/cassette-format.md shows reads what we write, and agrees with our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cassette.file.view import read
from harness.cassette.format import FORMAT, Line
from harness.cassette.request.canonical import canonical_json, canonical_request
from harness.schema.record import Record
from tests.docs.pages import ROOT, blocks, script

PAGE = ROOT / "docs" / "cassette-format.md"
SHIPPED = sorted((ROOT / "cassettes").rglob("*.jsonl"))


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What the page's code defines, without its last lines, which use it."""
    defined: dict[str, Any] = {}
    exec(compile(script(PAGE).partition("\ncassette = ")[0], str(PAGE), "exec"), defined)
    return defined


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_reader_on_the_page_rebuilds_every_request(path: Path, shown: dict[str, Any]):
    rebuilt = shown["requests"](shown["read"](path))
    view = read(path)
    assert rebuilt == {name: view.messages(name) for name in view.interactions} != {}


def test_the_reader_on_the_page_refuses_a_damaged_line(tmp_path: Path, shown: dict[str, Any]):
    lines = SHIPPED[0].read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b'"latency_s":', b'"latency_s":1', 1)
    path = tmp_path / "0.jsonl"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=r"0\.jsonl:3"):
        shown["read"](path)


def test_the_worked_example_is_right():
    page = PAGE.read_text()
    shown = {block.language: block.text for block in blocks(PAGE)}
    request = canonical_request("POST", "http://h/v1/chat/completions/?q", shown["json"].encode())
    messages = [canonical_json(message).decode() for message in request.messages]
    assert shown["text"].splitlines() == messages
    assert f"`{canonical_json(request.parameters).decode()}`" in page
    for digest in (request.parameters_digest, *request.chain, request.digest):
        assert f"`{digest}`" in page


def test_the_page_names_every_kind_of_line_and_every_key():
    page = PAGE.read_text()
    records: list[type[Record]] = list(Line.__args__[0].__args__)
    missing = [
        f"{record.__name__}.{name}"
        for record in records
        for name in record.model_fields
        if f"`{name}`" not in page
    ]
    assert missing == []
    assert f"version {FORMAT}" in page
    kinds = {record.model_fields["kind"].default for record in records}
    assert all(f"| `{kind}` |" in page for kind in kinds), sorted(kinds)
