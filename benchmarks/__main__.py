"""Every benchmark, one after another; `--picture FILE` draws the replay speeds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import engine, picture, replay, tables
from benchmarks.demands import demands
from benchmarks.workers import PEERS_PYTHON, PEERS_STAMP, fresh


def main() -> int:
    """Print the figures; 1 where a requirement does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to put it")
    arguments = parser.parse_args()
    peers = fresh("benchmarks.peers", PEERS_PYTHON) if PEERS_STAMP.exists() else None
    workers = replay.Workers(
        ours=fresh("benchmarks.ours"),
        recording=fresh("benchmarks.recording"),
        many=fresh("benchmarks.many"),
        trials=fresh("benchmarks.trials"),
        peers=peers,
    )
    results = replay.run(replay.Plan(), workers)
    for line in tables.lines(results):
        print(line)
    print(flush=True)
    engine.main()
    print()
    required = list(demands(results))
    for line in tables.verdicts(required):
        print(line)
    if arguments.picture is not None:
        arguments.picture.write_text(picture.svg(results), encoding="utf-8")
    return int(any(demand.holds is False for demand in required))


if __name__ == "__main__":
    sys.exit(main())
