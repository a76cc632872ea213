"""A suite's `[recording]` table in the cassettes of its cells."""

from __future__ import annotations

from pathlib import Path

from harness.loader.suite import load_suite
from harness.redaction import PLACEHOLDER
from harness.runner.plan import plan
from harness.runner.trial import TrialSettings, open_cassette
from tests.cassette.cells import answer, request
from tests.loader.suite_folders import SUITE, make_suite

RULES = """
[recording]
ignore = ["seed"]
normalise = ["dates"]
redact = ["INT-[0-9]{4}"]
keep_errors = true
"""


def test_a_cell_is_recorded_and_replayed_under_its_suites_rules(tmp_path: Path):
    make_suite(tmp_path / "suite", suite=SUITE + RULES)
    (cell, *_) = plan(load_suite(tmp_path / "suite"))
    cassettes = tmp_path / "cassettes"
    with open_cassette(cell, TrialSettings(cassettes, record_mode="new_episodes")) as store:
        session = store.session("baseline")
        asked = request("INT-1234 is due on 2026-11-22", seed=1)
        assert session.claim(asked) is None
        session.append(asked, answer("x"), latency_s=0)
        session.finish()
    (file,) = (file for file in cassettes.rglob("*") if file.is_file())
    assert f"{PLACEHOLDER} is due on <date>" in file.read_text()
    assert "seed" not in file.read_text()
    with open_cassette(cell, TrialSettings(cassettes)) as store:
        session = store.session("baseline")
        assert session.claim(request("INT-9999 is due on 2027-01-01", seed=2)) is not None
        assert session.rules.rules.keep_errors
