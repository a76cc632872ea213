"""What the engine itself costs, beside the SDK for the same request."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx2
import openai

from benchmarks.corpus import VENDORS
from harness.loop.engine import Loop
from harness.protocols import OnDelta
from harness.providers.openai_chat import OpenAIChat
from harness.providers.scripted import turn
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ModelTurn, Usage
from harness.tools.function import function_tool
from harness.tools.registry import Registry
from harness.values import ModelRequest

TOOLS = 20
ITERATIONS = 200
RESULT_CHARS = 5_000
"""Two hundred results of this size are a conversation of one megabyte."""
LONGER = 5
ROUNDS = 5


def main(iterations: int = ITERATIONS, rounds: int = ROUNDS) -> None:
    """Print what an iteration costs, in CPU time, and how that grows with the history."""
    megabytes = iterations * RESULT_CHARS / 1e6
    print(f"Engine: {TOOLS} tools, {iterations} iterations, {megabytes:g} MB of results, CPU time")
    runs = [_run(iterations) for _ in range(rounds)]
    engine_ms = statistics.median(statistics.mean(times) for times, _ in runs) * 1e3
    sdk_ms = _sdk_ms(runs[-1][1])
    print(f"  engine, an iteration       {engine_ms:>8.3f} ms")
    print(f"  openai SDK, last request   {sdk_ms:>8.3f} ms")
    print(f"  ratio                      {engine_ms / sdk_ms:>8.3f}")
    growths = [_growth(_run(iterations * LONGER)[0]) for _ in range(rounds)]
    print(
        f"  {iterations * LONGER:,} iterations: an iteration of the last fifth beside one of the "
        f"first {statistics.median(growths):.2f}"
    )


class Script:
    """A model that answers at once; it notes when it was asked, and what."""

    def __init__(self, iterations: int) -> None:
        self.answers = self._turns(iterations)
        self.times: list[float] = []
        self.last: ModelRequest | None = None

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        del on_delta
        self.times.append(time.process_time())
        self.last = request
        return next(self.answers)

    @staticmethod
    def _turns(iterations: int) -> Iterator[ModelTurn]:
        usage = Usage(input=10, output=5)
        for number in range(iterations - 1):
            raw = f'{{"number": {number}}}'
            call = (f"call_{number}", f"tool_{number % TOOLS}", raw)
            yield turn("Looking.", calls=[call], usage=usage)
        yield turn("done", usage=usage)


def look(number: int) -> str:
    """Look something up.

    Args:
        number: What to look up.
    """
    return f"{number:05}" * (RESULT_CHARS // 5)


def _run(iterations: int) -> tuple[list[float], ModelRequest]:
    """CPU seconds of each iteration, and the last request."""
    script = Script(iterations)
    loop = Loop(
        script,
        model="bench",
        tools=Registry([function_tool(look, name=f"tool_{number}") for number in range(TOOLS)]),
        config=LoopConfig(max_iterations=iterations),
    )
    loop.run("Look everything up.")
    assert script.last is not None
    return [later - earlier for earlier, later in pairwise(script.times)], script.last


def _growth(times: list[float]) -> float:
    fifth = len(times) // LONGER
    return statistics.mean(times[-fifth:]) / statistics.mean(times[:fifth])


def _sdk_ms(request: ModelRequest) -> float:
    body, headers = VENDORS["openai"].answer_bytes(0), {"content-type": "application/json"}
    client = openai.OpenAI(
        api_key="bench",
        base_url="http://bench.invalid/v1",
        http_client=httpx2.Client(
            transport=httpx2.MockTransport(
                lambda _: httpx2.Response(200, content=body, headers=headers)
            )
        ),
    )
    wire: dict[str, Any] = {**OpenAIChat().to_request(request)}
    client.chat.completions.with_raw_response.create(**wire)
    started = time.process_time()
    for _ in range(ROUNDS):
        client.chat.completions.with_raw_response.create(**wire)
    return (time.process_time() - started) / ROUNDS * 1e3
