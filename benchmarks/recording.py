"""What it costs to record a call: the call through a cassette, less the same call without one."""

from __future__ import annotations

import json
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.corpus import TURNS, VENDORS
from benchmarks.ours import session
from benchmarks.sdk import asker
from benchmarks.server import running
from harness.cassette.http import use


def main(vendor_name: str, path: str, recorded: int, conversations: int) -> dict[str, Any]:
    """Add conversations to a cassette that holds some calls.

    The SDK asks a server in another process. Conversations with and without the cassette take
    turns, each call being made both ways.
    """
    vendor = VENDORS[vendor_name]
    plain: list[float] = []
    through: list[float] = []
    with running() as base_url, session(Path(path), "new_episodes") as trial:
        ask = asker(vendor, base_url=base_url)
        first = -(-recorded // TURNS)
        # What an SDK does once is part of neither.
        for number in range(TURNS):
            ask(vendor.request(number))
        for conversation in range(first, first + conversations):
            numbers = range(conversation * TURNS, (conversation + 1) * TURNS)
            for spent, how in ((plain, nullcontext()), (through, use(trial))):
                bodies = [vendor.request(number) for number in numbers]
                with how:
                    for body in bodies:
                        started = time.process_time()
                        ask(body)
                        spent.append(time.process_time() - started)
        assert trial.recorded == len(through)
    return {
        "vendor": vendor_name,
        "recorded": recorded,
        "calls": len(through),
        "plain_ms": statistics.mean(plain) * 1e3,
        "through_ms": statistics.mean(through) * 1e3,
        "overhead_ms": (statistics.mean(through) - statistics.mean(plain)) * 1e3,
    }


if __name__ == "__main__":
    positional, named = json.loads(sys.argv[1])
    print(json.dumps(main(*positional, **named)))
