"""Our cassettes beside other recorders: the whole run, in the order in which it goes."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.corpus import VENDORS
from benchmarks.timing import Effort, Row
from benchmarks.workers import Worker, WorkerFailed

FRONTS = ("http", "direct")
OTHER_BYTES = "http, other bytes"
PEERS = {
    "vcrpy YAML": ("openai", "anthropic"),
    "vcrpy JSON": ("openai", "anthropic"),
    "llm-cassette": ("openai", "anthropic"),
    "cassette-sdk": ("openai",),
}
"""And whose SDKs they can be used with."""
PEER_EFFORT = Effort(first_pass=2_000, rounds=0, limit_calls=250, budget_s=6.0)
"""One pass, cut short where it is slow."""
RIVAL = "llm-cassette"
"""What the direct front is measured by, and so is measured more than once."""


@dataclass(frozen=True, slots=True)
class Workers:
    """What measures."""

    ours: Worker
    recording: Worker
    many: Worker
    trials: Worker
    peers: Worker | None
    """None leaves the others out."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    sizes: tuple[int, ...] = (100, 1_000, 5_000, 50_000)
    other_bytes: int = 1_000
    """The size at which calls are also made in other bytes than they were recorded in."""
    peer_sizes: tuple[int, ...] = (100, 1_000, 5_000)
    sample: int = 3_000
    """Calls that are compared in recordings that are longer than every other recorder's."""
    effort: Effort = field(default_factory=Effort)
    peer_effort: Effort = PEER_EFFORT
    rival_rounds: int = 3
    many: int = 5_000
    recorded: tuple[int, ...] = (0, 10_000)
    """How many calls a cassette holds when the cost of recording another one is measured."""
    conversations: int = 20
    trials: int = 200
    starts: int = 50
    at_once: int = 2
    """How many recordings are made at once; nothing is measured meanwhile."""


@dataclass(slots=True)
class Results:
    """What came of it."""

    rows: list[Row] = field(default_factory=list)
    recording: list[dict[str, Any]] = field(default_factory=list)
    many: dict[str, Any] = field(default_factory=dict)
    trials: dict[str, Any] = field(default_factory=dict)
    """Empty where they could not be run."""
    notes: list[str] = field(default_factory=list)

    def row(self, name: str, vendor: str, calls: int) -> Row | None:
        """One row, if it was measured."""
        return next(
            (r for r in self.rows if (r.name, r.vendor, r.calls) == (name, vendor, calls)), None
        )


def run(plan: Plan, workers: Workers) -> Results:
    """Record everything, then measure one thing after another."""
    results = Results()
    if workers.peers is None:
        results.notes.append(
            "The other recorders are left out: their environment could not be made."
        )
    with _folder(in_memory=True) as fast, _folder(in_memory=False) as disk:
        _record_all(plan, workers, fast, results)
        for vendor in VENDORS:
            for front in FRONTS:
                _measure_ours(plan, workers, front, vendor, fast, results)
            if plan.other_bytes in plan.sizes:
                once = replace(plan, sizes=(plan.other_bytes,))
                _measure_ours(once, workers, OTHER_BYTES, vendor, fast, results)
            for peer in (p for p, vendors in PEERS.items() if vendor in vendors):
                _measure_peer(plan, workers, peer, vendor, fast, results)
        _say(f"{plan.many:,} cassettes of one conversation")
        results.many = workers.many(str(fast / "many"), plan.many)
        _measure_recording(plan, workers, fast, disk, results)
    _measure_trials(plan, workers, results)
    return results


def _record_all(plan: Plan, workers: Workers, folder: Path, results: Results) -> None:
    """What is to be measured."""
    jobs: list[partial[dict[str, Any]]] = []
    for vendor in VENDORS:
        for calls in sorted({*plan.sizes, *filter(None, plan.recorded)}, reverse=True):
            path = str(_path(folder, "ours", vendor, calls))
            jobs.append(partial(workers.ours, "record", vendor, calls, path))
    if (record := workers.peers) is not None:
        for peer, vendors in PEERS.items():
            for vendor in vendors:
                for calls in plan.peer_sizes:
                    path = str(_path(folder, peer, vendor, calls))
                    jobs.append(partial(record, "record", peer, vendor, calls, path))
    _say(f"recording {len(jobs)} cassettes")
    with ThreadPoolExecutor(plan.at_once) as pool:
        for done in [pool.submit(job) for job in jobs]:
            try:
                done.result()
            except WorkerFailed as error:
                results.notes.append(f"A recording failed: {error}")


def _measure_ours(
    plan: Plan, workers: Workers, front: str, vendor: str, folder: Path, results: Results
) -> None:
    for calls in plan.sizes:
        _say(f"ours, {front} front, {vendor}, {calls:,} calls")
        effort = plan.effort
        if calls > max(plan.peer_sizes):
            effort = replace(effort, first_pass=plan.sample)
        path = str(_path(folder, "ours", vendor, calls))
        results.rows.append(Row(**workers.ours(front, vendor, calls, path, **asdict(effort))))


def _measure_peer(
    plan: Plan, workers: Workers, peer: str, vendor: str, folder: Path, results: Results
) -> None:
    for calls in plan.peer_sizes if workers.peers is not None else ():
        assert workers.peers is not None
        _say(f"{peer}, {vendor}, {calls:,} calls")
        path = str(_path(folder, peer, vendor, calls))
        effort = asdict(plan.peer_effort)
        try:
            rows = [
                Row(**workers.peers("replay", peer, vendor, calls, path, **effort))
                for _ in range(plan.rival_rounds if peer == RIVAL else 1)
            ]
        except WorkerFailed as error:
            results.notes.append(f"{peer}, {vendor}, {calls:,} calls: {error}")
            continue
        results.rows.append(_middle(rows))


def _middle(rows: list[Row]) -> Row:
    """The row whose ratio is the median."""
    ratio = statistics.median_low(row.ratio for row in rows)
    return next(row for row in rows if row.ratio == ratio)


def _measure_recording(
    plan: Plan, workers: Workers, folder: Path, disk: Path, results: Results
) -> None:
    for vendor in VENDORS:
        for recorded in plan.recorded:
            _say(f"recording, {vendor}, after {recorded:,} calls")
            path = _path(disk, "recording", vendor, recorded)
            path.parent.mkdir(parents=True, exist_ok=True)
            if recorded:
                shutil.copyfile(_path(folder, "ours", vendor, recorded), path)
            found = workers.recording(vendor, str(path), recorded, plan.conversations)
            results.recording.append(found)


def _measure_trials(plan: Plan, workers: Workers, results: Results) -> None:
    _say(f"{plan.trials:,} trials, {plan.starts:,} starts of a sandbox")
    try:
        results.trials = workers.trials(plan.trials, plan.starts)
    except WorkerFailed as error:
        results.notes.append(f"Trials: {error}")


def _path(folder: Path, recorder: str, vendor: str, calls: int) -> Path:
    return folder / recorder.replace(" ", "-") / f"{vendor}-{calls}.jsonl"


@contextmanager
def _folder(*, in_memory: bool) -> Iterator[Path]:
    """A folder of its own; in memory, syncing 100,000 recorded calls takes no time."""
    memory = Path("/dev/shm")
    place = memory if in_memory and memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as folder:
        yield Path(folder)


def _say(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)
