"""Misses that have the same reason are told once."""

from __future__ import annotations

from harness.analysis.misses import group_misses
from harness.schema.results import MissCause, TrialRecord
from tests.analysis.trials import trial


def missed(task: str, variant: str, cause: str, difference: str = "") -> TrialRecord:
    miss = MissCause(cause=cause, difference=difference)
    return trial(task, variant, miss=miss)


HEAD = "--- recorded\n+++ now\n@@ -1 +1 @@\n"


def test_the_same_change_is_one_cause_wherever_it_stands_and_whatever_is_around_it():
    (group,) = group_misses(
        [
            missed("a", "plain", "message 6 (user)", f"{HEAD} before\n-Done?\n+Sure?\n after"),
            missed("b", "plain", "message 8 (user)", f"{HEAD}-  Done?\n+  Sure?"),
            missed("b", "other", "message 8 (user)", f"{HEAD}-  Done?\n+  Sure?"),
            trial("c", "plain"),
        ]
    )
    assert group.cause == "message 8 (user), message 6 (user)"
    assert (group.tasks, group.variants) == (("a", "b"), ("plain", "other"))
    assert group.trials == ("a/plain/0", "b/plain/0", "b/other/0")
    assert " before" in group.difference


def test_the_most_frequent_cause_comes_first():
    groups = group_misses(
        [
            missed("a", "plain", "nothing recorded"),
            missed("b", "plain", "the tools", f"{HEAD}+- shell"),
            missed("c", "plain", "the tools", f"{HEAD}+- shell"),
        ]
    )
    assert [(group.cause, len(group.trials)) for group in groups] == [
        ("the tools", 2), ("nothing recorded", 1),
    ]  # fmt: skip


def test_many_places_of_one_change_are_counted():
    trials = [
        missed("a", "plain", f"message {place} (user)", f"{HEAD}-Done?\n+Sure?")
        for place in range(5)
    ]
    (group,) = group_misses(trials)
    assert group.cause == "message 0 (user), message 1 (user), message 2 (user) and 2 more"
