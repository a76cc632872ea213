"""Which rules are tried on a text, and what is remembered of its words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.redaction.marks import Marks
from harness.redaction.rules import RULES

MARKS = sorted({mark.decode() for rule in RULES for mark in rule.marks})
WORDS = st.one_of(
    st.sampled_from(["the", "sum", "of", "numbers", "total_tokens", "x" * 20]),
    st.sampled_from(MARKS).map(str.upper),
    st.sampled_from(MARKS).map(lambda mark: f"{mark}0123456789abcdef"),
)
TEXTS = st.lists(WORDS, max_size=12).map(lambda words: " ".join(words).encode())


@given(st.lists(TEXTS, max_size=6))
def test_what_was_seen_before_changes_nothing(texts: list[bytes]):
    marks = Marks(RULES)
    for text in texts:
        assert marks.rules_for(text) == Marks(RULES).rules_for(text)


def test_a_text_of_more_words_than_are_remembered_is_looked_at_each_time():
    marks = Marks(RULES)
    text = " ".join(f"word{number}" for number in range(60_000)).encode()
    for _ in range(2):
        assert marks.rules_for(text) == []
        assert marks.rules_for(text + b" password=") == Marks(RULES).rules_for(b"password=") != []
