"""Record or replay with one of them: a JSON list of arguments in, a JSON object out."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.corpus import VENDORS
from benchmarks.timing import Effort, measure

PEERS = {
    "vcrpy YAML": ("stock_vcrpy", "yaml"),
    "vcrpy JSON": ("stock_vcrpy", "json"),
    "llm-cassette": ("llm_cassettes", ""),
    "cassette-sdk": ("cassette_sdk", ""),
}
"""Module beside this one, and the form of file, where there is a choice.

A module is imported only when it is asked for: its library changes the process or may be absent.
"""


def main(
    action: str, peer: str, vendor_name: str, calls: int, path: str, **effort: float
) -> dict[str, Any]:
    """Record the calls, or replay them."""
    module, form = PEERS[peer]
    vendor = VENDORS[vendor_name]
    recorder = importlib.import_module(f"benchmarks.peers.{module}").Peer(vendor, form)
    if action == "record":
        recorder.record(calls, Path(path))
        return {}
    effort_ = Effort(**effort)  # type: ignore[arg-type]
    return measure(peer, recorder, vendor, calls, Path(path), effort_).as_json()


if __name__ == "__main__":
    positional, named = json.loads(sys.argv[1])
    print(json.dumps(main(*positional, **named)))
