"""Recall: what earlier work taught, put into the system prompt."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MOST_ITEMS = 5
_K1 = 1.2
_B = 0.75


def with_recalled(system: str | None, items: Sequence[str]) -> str | None:
    """The system prompt with up to five earlier items, the best first."""
    kept = [text for item in items if (text := item.strip())][:MOST_ITEMS]
    if not kept:
        return system
    numbered = [f"{number}. {text}" for number, text in enumerate(kept, start=1)]
    section = "\n".join(["From earlier work, which may help or not:", *numbered])
    return section if system is None else f"{system}\n\n{section}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something remembered, with the words it is found by."""

    text: str
    words: Counter[str]


class WordRecall:
    """A memory of tasks and their results, found again by the words they share with a new task.

    It lives as long as the object. An entry's score is BM25: the sum, over the distinct words w of
    the query, of idf(w) * tf / (tf + k1 * (1 - b + b * length / mean length)). There tf is how
    often the entry has w, k1 = 1.2, b = 0.75, and idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5)) for n
    of N entries that have w; the 1 in it keeps a frequent word from counting against an entry. Of
    equal entries the newer comes first; one without a common word is not found.

    Source: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009.
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def remember(self, task: str, result: str) -> None:
        """Add what came of a task."""
        text = f"Task: {task.strip()}\nResult: {result.strip()}"
        self._entries.append(_Entry(text, Counter(_words(f"{task} {result}"))))

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Up to `limit` entries that share words with the query, the best first."""
        # Sorted, since sums of floats depend on their order.
        weights = {word: self._idf(word) for word in sorted(set(_words(query)))}
        total = sum(entry.words.total() for entry in self._entries)
        scored = [
            (_score(entry.words, entry.words.total() * len(self._entries) / total, weights), place)
            for place, entry in enumerate(self._entries)
            if not weights.keys().isdisjoint(entry.words)
        ]
        scored.sort(reverse=True)
        return tuple(self._entries[place].text for _, place in scored[:limit])

    def _idf(self, word: str) -> float:
        having = sum(word in entry.words for entry in self._entries)
        return math.log(1 + (len(self._entries) - having + 0.5) / (having + 0.5))


def _score(words: Counter[str], relative_length: float, weights: dict[str, float]) -> float:
    norm = _K1 * (1 - _B + _B * relative_length)
    return sum(weight * words[word] / (words[word] + norm) for word, weight in weights.items())


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
