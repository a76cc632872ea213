"""The `[recording]` table of suite.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.loader.suite import load_suite
from harness.runner.plan import plan
from harness.schema.recording import RecordingRules, Replacement
from tests.loader.suite_folders import SUITE, make_suite


def loaded(folder: Path, table: str) -> RecordingRules:
    make_suite(folder, suite=f"{SUITE}\n[recording]\n{table}\n")
    return load_suite(folder).recording


def test_a_suite_without_the_table_has_no_rules(tmp_path: Path):
    make_suite(tmp_path)
    assert load_suite(tmp_path).recording == RecordingRules()


def test_the_rules_of_a_suite_reach_each_cell(tmp_path: Path):
    table = """
ignore = ["seed", "metadata.user_id", "messages.*.name"]
normalise = ["dates", {pattern = "run (\\\\d+)", replace = "run \\\\1?"}, "ids"]
redact = ["INT-[0-9]{4}"]
keep_errors = true
"""
    rules = loaded(tmp_path, table)
    assert rules == RecordingRules(
        ignore=("seed", "metadata.user_id", "messages.*.name"),
        normalise=("dates", Replacement(pattern=r"run (\d+)", replace=r"run \1?"), "ids"),
        redact=("INT-[0-9]{4}",),
        keep_errors=True,
    )
    assert {cell.recording for cell in plan(load_suite(tmp_path))} == {rules}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            'normalise = ["datez"]',
            "recording.normalise[0] = 'datez': unknown name; known: dates, ids, temporary-paths, or"
            " write a table with pattern and replace",
        ),
        (
            'normalise = ["dates", {pattern = "(", replace = ""}]',
            "recording.normalise[1].pattern = '(': not a regular expression: missing ),"
            " unterminated subpattern at position 0",
        ),
        (
            'normalise = [{pattern = "a*", replace = "b"}]',
            "recording.normalise[0].pattern = 'a*': matches the empty text; say what it needs at"
            " least",
        ),
        (
            'normalise = [{pattern = "a", replace = "\\\\2"}]',
            r"recording.normalise[0]: replace = '\\2': invalid group reference 2 at position 1",
        ),
        (
            'normalise = [{pattern = "a", replace = "\\\\g<b>"}]',
            r"recording.normalise[0]: replace = '\\g<b>': unknown group name 'b'",
        ),
        ('normalise = [{pattern = "a"}]', "recording.normalise[0].replace: missing; add it"),
        ("normalise = [1]", "recording.normalise[0] = 1: give text or a table"),
        (
            'redact = ["ok", "["]',
            "recording.redact[1] = '[': not a regular expression: unterminated character set at"
            " position 0",
        ),
        ('redact = [""]', "recording.redact[0] = '': matches the empty text; say what it needs"),
        ('ignore = ["a..b"]', "recording.ignore[0] = 'a..b': write KEY, or KEY.KEY to go deeper"),
        ('ignore = [""]', "recording.ignore[0] = '': write KEY, or KEY.KEY to go deeper"),
        (
            'ignore = ["messages"]',
            "recording.ignore[0] = 'messages': of the messages only a field can be left out, as in"
            " messages.*.name",
        ),
        ('ignore = ["messages.*"]', "recording.ignore[0] = 'messages.*': of the messages only"),
        ('ignored = ["a"]', "recording.ignored: unknown key; did you mean 'ignore'?"),
        ("keep_errors = 1", "recording.keep_errors = 1: input should be a valid boolean"),
    ],
)
def test_a_mistake_is_named_with_file_key_and_value(tmp_path: Path, table: str, problem: str):
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, table)
    assert str(caught.value).startswith(f"{tmp_path / 'suite.toml'}: {problem}")
    assert "\n" not in str(caught.value)
