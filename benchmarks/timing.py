"""How a recorder is measured: the same for ours and for every other one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.corpus import Vendor, conversation_order
from benchmarks.memory import growth
from benchmarks.sdk import is_answer, mocked

AHEAD = 100
"""So many requests are made before they are timed: making them is no part of a call."""
WARM = 20


class Recorder(Protocol):
    """Something that answers calls from a recording."""

    def order(self, calls: int, sample: int) -> Iterable[int]:
        """Which calls of a recording to make, and in what order."""
        ...

    def requests(self, numbers: Sequence[int]) -> list[Any]:
        """What is to be asked, in the form that `opened` takes."""
        ...

    def opened(self, path: Path) -> AbstractContextManager[Callable[[Any], Any]]:
        """What asks, with the recording open."""
        ...

    def is_answer(self, number: int, answer: Any) -> bool:
        """Whether an answer is the recorded one."""
        ...


class ThroughSdk:
    """What recorders that answer below or in the SDK have in common."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor

    def order(self, calls: int, sample: int) -> Iterable[int]:
        return conversation_order(calls, sample)

    def requests(self, numbers: Sequence[int]) -> list[Any]:
        return [self.vendor.request(number) for number in numbers]

    def is_answer(self, number: int, answer: Any) -> bool:
        return is_answer(self.vendor, number, answer)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    first_pass: int = 5_000
    """Calls of the first pass, every answer of which is compared, and which memory is taken of."""
    rounds: int = 5
    """Further passes, for speed; with none the first pass gives it."""
    round_calls: int = 500
    limit_calls: int = 500
    """Calls of the SDK alone before each round."""
    budget_s: float = 1e9
    """CPU seconds after which a pass ends."""

    @property
    def sample(self) -> int:
        """Calls that are played at all."""
        return max(self.first_pass, self.rounds * self.round_calls)


@dataclass(frozen=True, slots=True)
class Row:
    """What one recorder did with one recording."""

    name: str
    vendor: str
    calls: int
    """In the recording."""
    rate: float
    """Calls per CPU second."""
    limit: float
    """The same of the SDK on a mock transport, in the same process."""
    ratio: float
    opening_ms: float
    """CPU time until the first answer is there, less what a call costs."""
    memory_mb: float
    file_bytes: int
    played: int
    wrong: int

    def as_json(self) -> dict[str, Any]:
        """For the process that asked."""
        return asdict(self)


@dataclass(slots=True)
class _Tally:
    """What passes took."""

    spent: list[float] = field(default_factory=list)
    """CPU seconds of each call but the first of a pass, which may still be opening."""
    openings: list[float] = field(default_factory=list)
    played: int = 0
    wrong: int = 0

    @property
    def call_s(self) -> float:
        return statistics.mean(self.spent)


def measure(
    name: str, recorder: Recorder, vendor: Vendor, calls: int, path: Path, effort: Effort
) -> Row:
    """Measure one recorder on one recording; to be run in a process of its own."""
    order = list(recorder.order(calls, effort.sample))
    limit = mocked(vendor)
    _limit_s(limit, vendor, order[: min(WARM, effort.limit_calls)])
    before = _limit_s(limit, vendor, order[: effort.limit_calls])
    first = _Tally()
    with growth() as grown:
        _play(first, recorder, path, order[: effort.first_pass], effort.budget_s)
    after = _limit_s(limit, vendor, order[: effort.limit_calls])
    tallies, limits = [first], [(before + after) / 2]
    for number in range(effort.rounds):
        chosen = _turn_about(order, number, effort.round_calls)
        limits.append(_limit_s(limit, vendor, chosen[: effort.limit_calls]))
        tally = _Tally()
        for _ in range(effort.round_calls // len(chosen)):
            _play(tally, recorder, path, chosen, effort.budget_s)
        tallies.append(tally)
    timed = list(zip(tallies, limits, strict=True))
    timed = timed[1:] or timed
    return Row(
        name=name,
        vendor=vendor.name,
        calls=calls,
        rate=statistics.median(1 / tally.call_s for tally, _ in timed),
        limit=statistics.median(1 / limit_s for _, limit_s in timed),
        ratio=statistics.median(limit_s / tally.call_s for tally, limit_s in timed),
        opening_ms=statistics.median(s for tally, _ in timed for s in tally.openings) * 1e3,
        memory_mb=grown.mb,
        file_bytes=size_of(path),
        played=sum(tally.played for tally in tallies),
        wrong=sum(tally.wrong for tally in tallies),
    )


def _play(
    tally: _Tally, recorder: Recorder, path: Path, numbers: Sequence[int], budget_s: float
) -> None:
    """One pass over a recording that is opened for it."""
    spent: list[float] = []
    total = 0.0
    clock = time.process_time
    started = clock()
    with recorder.opened(path) as ask:
        opening_s = clock() - started
        for start in range(0, len(numbers), AHEAD):
            ahead = numbers[start : start + AHEAD]
            answers = []
            for request in recorder.requests(ahead):
                before = clock()
                answer = ask(request)
                spent.append(clock() - before)
                answers.append(answer)
                total += spent[-1]
                if total > budget_s:
                    break
            played = ahead[: len(answers)]
            pairs = zip(played, answers, strict=True)
            tally.wrong += sum(not recorder.is_answer(*pair) for pair in pairs)
            if len(answers) < len(ahead):
                break
    tally.played += len(spent)
    tally.spent += spent[1:] or spent
    usual_s = statistics.mean(spent[1:] or spent)
    tally.openings.append(opening_s + max(0.0, spent[0] - usual_s))


def _limit_s(ask: Callable[[Any], Any], vendor: Vendor, numbers: Sequence[int]) -> float:
    """CPU seconds of a call of the SDK alone."""
    total = 0.0
    for start in range(0, len(numbers), AHEAD):
        bodies = [vendor.request(number) for number in numbers[start : start + AHEAD]]
        started = time.process_time()
        for body in bodies:
            ask(body)
        total += time.process_time() - started
    return total / len(numbers)


def _turn_about(order: Sequence[int], number: int, count: int) -> list[int]:
    """The calls of a round; other ones than those of the round before, where there are enough."""
    start = number * count % len(order)
    return list(order[start : start + count])


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size
