"""vcrpy as it is, matching on method, URI and body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import vcr  # type: ignore[import-untyped]
from vcr.request import Request  # type: ignore[import-untyped]

from benchmarks.corpus import Vendor
from benchmarks.sdk import asker, mocked
from benchmarks.timing import ThroughSdk

SECRET_HEADERS = ["authorization", "x-api-key"]


class Peer(ThroughSdk):
    """One vendor's calls in a file of one form."""

    def __init__(self, vendor: Vendor, form: str) -> None:
        super().__init__(vendor)
        self._form = form
        self._ask = asker(vendor)

    def record(self, calls: int, path: Path) -> None:
        """The first call through the SDK, the others in its shape: only the file matters."""
        vendor = self.vendor
        ask = mocked(vendor)
        # Looking for a recorded request, as recording does, is what makes it slow.
        with self._cassette(path, "new_episodes", ["method"]) as cassette:
            ask(vendor.request(0))
            request, response = cassette.data[0]
            for number in range(1, calls):
                body = {"string": vendor.answer_bytes(number)}
                cassette.append(
                    Request("POST", request.uri, vendor.request_bytes(number), request.headers),
                    {**response, "body": body},
                )

    @contextmanager
    def opened(self, path: Path) -> Iterator[Callable[[Any], Any]]:
        with self._cassette(path, "none", ["method", "uri", "body"]):
            yield self._ask

    def _cassette(self, path: Path, mode: str, match_on: list[str]) -> Any:
        recorder = vcr.VCR(filter_headers=SECRET_HEADERS)
        return recorder.use_cassette(
            str(path), record_mode=mode, serializer=self._form, match_on=match_on
        )
