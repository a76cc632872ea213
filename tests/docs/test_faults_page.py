"""The page of faults: every example can be given, every kind is there."""

from __future__ import annotations

import re

import pytest

from harness.cassette.playback import STATUSES, FaultPlan
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^harness run basics --faults (\S+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("spec", EXAMPLES)
def test_an_example_makes_calls_go_wrong(spec: str) -> None:
    faults = FaultPlan.parse(spec).begin("trial")
    assert any(faults.next() for _ in range(200))


def test_there_are_examples_of_every_part() -> None:
    assert all(part in "".join(EXAMPLES) for part in ("@", "-", "%", "seed="))


def test_every_kind_is_named() -> None:
    assert all(f"{status}" in PAGE for status in STATUSES)
    assert all(f"`{kind}`" in PAGE for kind in ("timeout", "cut", "malformed"))
