"""llm-cassette: it stands in for the SDKs' methods, and answers in the recorded order."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.corpus import Vendor, number_of
from benchmarks.sdk import asker, mocked
from benchmarks.timing import ThroughSdk

llm_cassette = importlib.import_module("llm_cassette")


class Peer(ThroughSdk):
    """One vendor's calls."""

    def __init__(self, vendor: Vendor, form: str) -> None:
        super().__init__(vendor)
        importlib.import_module(f"llm_cassette.{vendor.name}").install()

    def record(self, calls: int, path: Path) -> None:
        """Through the SDK, in front of a mock transport."""
        vendor = self.vendor
        ask = mocked(vendor, lambda sent: vendor.answer_bytes(number_of(json.loads(sent.content))))
        with llm_cassette.cassette(str(path), mode="record"):
            for number in range(calls):
                ask(vendor.request(number))

    def order(self, calls: int, sample: int) -> Iterable[int]:
        return range(min(calls, sample))

    @contextmanager
    def opened(self, path: Path) -> Iterator[Callable[[Any], Any]]:
        with llm_cassette.cassette(str(path), mode="replay"):
            yield asker(self.vendor)
