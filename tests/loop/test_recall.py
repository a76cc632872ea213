"""What earlier work taught."""

from __future__ import annotations

import pytest

from harness.loop.recall import WordRecall, with_recalled


def remembering(*tasks: tuple[str, str]) -> WordRecall:
    recall = WordRecall()
    for task, result in tasks:
        recall.remember(task, result)
    return recall


def test_items_follow_the_system_prompt_in_order():
    assert with_recalled("Be brief.", ["first", " second\n"]) == (
        "Be brief.\n\nFrom earlier work, which may help or not:\n1. first\n2. second"
    )
    assert with_recalled(None, ["first"]) == ("From earlier work, which may help or not:\n1. first")


def test_without_items_the_system_prompt_stays_as_it_is():
    assert with_recalled("Be brief.", []) == "Be brief."
    assert with_recalled("Be brief.", [" "]) == "Be brief."
    assert with_recalled(None, []) is None


def test_at_most_five_items_are_taken():
    text = with_recalled(None, [f"item {n}" for n in range(9)])
    assert text is not None
    assert "5. item 4" in text
    assert "item 5" not in text


def test_the_entry_that_shares_more_and_rarer_words_comes_first():
    recall = remembering(
        ("Count the boats in the harbour", "12"),
        ("Count the lines of a log", "300"),
        ("Paint the fence", "done"),
    )
    assert recall.search("count the boats of the harbour", 5) == (
        "Task: Count the boats in the harbour\nResult: 12",
        "Task: Count the lines of a log\nResult: 300",
        "Task: Paint the fence\nResult: done",
    )
    assert len(recall.search("count the boats", 1)) == 1


def test_an_entry_without_a_common_word_is_not_found():
    recall = remembering(("Paint the fence", "done"))
    assert recall.search("count boats", 5) == ()
    assert recall.search("", 5) == ()
    assert WordRecall().search("anything", 5) == ()


def test_letter_case_and_punctuation_do_not_count_and_results_are_searched_too():
    recall = remembering(("Paint it", "used Café-blue"))
    assert len(recall.search("CAFÉ?", 5)) == 1


def test_of_equal_entries_the_newer_comes_first():
    recall = remembering(("boats", "old"), ("boats", "new"))
    assert recall.search("boats", 5)[0] == "Task: boats\nResult: new"


@pytest.mark.parametrize(("times", "first"), [(4, "short"), (5, "long")])
def test_a_word_counts_less_in_a_long_entry_and_each_time_again(times: int, first: str):
    # By hand, lengths 2 and 20, mean 11: 1 / (1 + 1.2 (0.25 + 0.75 * 2 / 11)) = 0.68, and with
    # norm 1.2 (0.25 + 0.75 * 20 / 11) = 1.94 the long one has 4 / 5.94 = 0.67 or 5 / 6.94 = 0.72.
    long_task = " ".join(["boats"] * times + ["x"] * (19 - times))
    recall = remembering(("boats", "short"), (long_task, "long"))
    assert recall.search("boats", 1)[0].endswith(f"Result: {first}")
