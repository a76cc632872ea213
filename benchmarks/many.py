"""Many small cassettes, each opened and closed, as a suite of many tasks does."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import TURNS, VENDORS
from benchmarks.ours import DirectFront, record
from harness.cassette.using import use

DIFFERENT = 50
"""So many are recorded, one conversation each; the others are copies under names of their own."""


def build(folder: Path, count: int) -> None:
    """Lay the cassettes down."""
    vendor = VENDORS["openai"]
    for number in range(min(count, DIFFERENT)):
        record(vendor, range(number * TURNS, (number + 1) * TURNS), _path(folder, number))
    for number in range(DIFFERENT, count):
        target = _path(folder, number)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_path(folder, number % DIFFERENT), target)


def main(folder: str, count: int) -> dict[str, Any]:
    """Open and close each, then open each, ask its first call and close it."""
    build(Path(folder), count)
    paths = [_path(Path(folder), number) for number in range(count)]
    front = DirectFront(VENDORS["openai"])
    opened, asked = [], []
    for path in paths:
        started = time.process_time()
        with use(path):
            pass
        opened.append(time.process_time() - started)
    wrong = 0
    for number, path in enumerate(paths):
        first = number % DIFFERENT * TURNS
        (request,) = front.requests([first])
        started = time.process_time()
        with front.opened(path) as ask:
            answer = ask(request)
        asked.append(time.process_time() - started)
        wrong += not front.is_answer(first, answer)
    return {
        "count": count,
        "open_close_ms": statistics.mean(opened) * 1e3,
        "with_a_call_ms": statistics.mean(asked) * 1e3,
        "wrong": wrong,
    }


def _path(folder: Path, number: int) -> Path:
    return folder / f"task-{number:05}" / "0.jsonl"


if __name__ == "__main__":
    positional, named = json.loads(sys.argv[1])
    print(json.dumps(main(*positional, **named)))
