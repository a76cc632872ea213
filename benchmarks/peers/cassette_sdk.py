"""cassette-sdk: a transport for the older httpx, and a file for each call."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.corpus import Vendor, number_of
from benchmarks.sdk import asker
from benchmarks.timing import ThroughSdk

recorder = importlib.import_module("cassette.recorder")


class Peer(ThroughSdk):
    """One vendor's calls."""

    def __init__(self, vendor: Vendor, form: str) -> None:
        super().__init__(vendor)

    def record(self, calls: int, path: Path) -> None:
        """Through the SDK, in front of a mock transport."""
        vendor = self.vendor

        def handle(sent: httpx.Request) -> httpx.Response:
            body = vendor.answer_bytes(number_of(json.loads(sent.content)))
            return httpx.Response(200, headers={"content-type": "application/json"}, content=body)

        transport = recorder.CassetteTransport(
            httpx.MockTransport(handle), path / "default", "record"
        )
        ask = asker(vendor, http_client=httpx.Client(transport=transport))
        for number in range(calls):
            ask(vendor.request(number))

    @contextmanager
    def opened(self, path: Path) -> Iterator[Callable[[Any], Any]]:
        client = recorder.http_client(mode="replay", cassette_dir=str(path))
        with client:
            yield asker(self.vendor, http_client=client)
