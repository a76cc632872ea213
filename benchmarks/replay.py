"""Replay through the HTTP front beside the same SDK on a mock transport, its upper limit."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx2
import openai

from benchmarks.traffic import answer, requests, server
from harness.cassette.http import use
from harness.cassette.store import Store
from harness.cassette.tape import Origin
from harness.redaction import Redactor
from harness.schema.results import RecordMode

SIZES = (10, 100)
ROUNDS = 3


def main() -> None:
    """Print one line per size: calls per CPU second of both, and their ratio."""
    body = answer()
    headers = {"content-type": "application/json"}
    mock = openai.OpenAI(
        api_key="bench",
        base_url="http://bench.invalid/v1",
        http_client=httpx2.Client(
            transport=httpx2.MockTransport(
                lambda request: httpx2.Response(200, content=body, headers=headers)
            )
        ),
    )
    print("Replay of OpenAI chat completions, calls per CPU second (median of rounds)")
    print(f"{'recorded calls':>14}  {'replay':>8}  {'SDK limit':>9}  {'ratio':>5}")
    for conversations in SIZES:
        with tempfile.TemporaryDirectory() as folder, server() as base_url:
            path = Path(folder) / "bench.jsonl"
            client = openai.OpenAI(api_key="bench", base_url=base_url)
            _with_cassette(path, "all", client, conversations)
            pairs = [
                (
                    _rate(conversations, partial(_with_cassette, path, "none", client)),
                    _rate(conversations, partial(_ask_all, mock)),
                )
                for _ in range(ROUNDS)
            ]
        replay = statistics.median(ours for ours, _ in pairs)
        limit = statistics.median(theirs for _, theirs in pairs)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        print(f"{conversations * 10:>14,}  {replay:>8,.0f}  {limit:>9,.0f}  {ratio:>5.2f}")


def _with_cassette(path: Path, mode: RecordMode, client: openai.OpenAI, conversations: int) -> None:
    origin = Origin("bench", "bench", 0, "-")
    with Store.open(path, mode, origin=origin, redactor=Redactor({})) as store:
        session = store.session("bench")
        with use(session):
            _ask_all(client, conversations)
        session.finish()


def _ask_all(client: openai.OpenAI, conversations: int) -> None:
    for body in requests(conversations):
        client.chat.completions.with_raw_response.create(**body)


def _rate(conversations: int, work: Callable[[int], None]) -> float:
    started = time.process_time()
    work(conversations)
    return conversations * 10 / (time.process_time() - started)
