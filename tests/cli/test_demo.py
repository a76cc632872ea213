"""`harness demo`: the suite of the checkout it is run in, replayed, compared and reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def checkout(recorded: Path) -> Path:
    """The tiny suite, standing for the shipped one."""
    for top in ("suites", "cassettes"):
        Path(top, "tiny").rename(Path(top, "basics"))
    suite = Path("suites/basics/suite.toml")
    suite.write_text(suite.read_text(encoding="utf-8").replace('"tiny"', '"basics"'))
    return recorded


def test_the_demo_replays_compares_and_reports(checkout, harness):
    done = harness("demo")
    assert done.code == 0
    lines = done.out.splitlines()
    assert ["fruit", "2/2", "2/2"] in [line.split() for line in lines]
    assert any(line.startswith("confirmed vs plain: pass rate") for line in lines)
    report = lines[-1].removeprefix("Report: ")
    assert "<html" in Path(report).read_text(encoding="utf-8")


def test_the_demo_as_json(checkout, harness):
    data = harness("demo", "--json").json
    assert data["run"]["trials"] == 8
    assert [one["candidate"] for one in data["comparisons"]] == ["confirmed"]


def test_a_demo_with_misses_says_so(checkout, harness):
    shutil.rmtree("cassettes/basics/fruit")
    done = harness("demo")
    assert done.code == 3
    assert "4 of 8 trials without a result (4 replay_miss), in fruit" in done.err
