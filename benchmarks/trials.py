"""Trials whose tools and verifiers really run: how many a second, and what starting one costs.

The model's answers come out of a recording, as they do for whoever checks a change of the loop on
live tools; everything else is what a live trial has.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness.sandbox.choose import problem, sandbox
from harness.schema.environment import Environment

JOBS = 2
KIND = "bubblewrap"
WARM = 3
MEMORY = Path("/dev/shm")
SUITE = """
name = "bench"
version = 1
system = "You work on a Linux machine."

[model]
provider = "openai"
name = "bench-1"
base_url = "{url}/v1"

[[variants]]
name = "plain"
"""
TASK = {
    "task.toml": '[environment]\nnetwork_mode = "no-network"\n',
    "instruction.md": "Write the sum of the numbers in numbers.txt to sum.txt.\n",
    "environment/Dockerfile": "FROM debian:12-slim\nWORKDIR /app\nCOPY numbers.txt .\n",
    "environment/numbers.txt": "1\n2\n39\n",
    "tests/test.sh": '[ "$(cat /app/sum.txt)" = 42 ]\necho $((! $?)) > /logs/verifier/reward.txt\n',
}
COMMAND = "awk '{sum += $1} END {print sum}' numbers.txt > sum.txt"


def main(trials: int, starts: int) -> dict[str, Any]:
    """Measure both, by the clock: most of the work is done by other processes."""
    return _starting(starts) | _many(trials)


def _many(trials: int) -> dict[str, Any]:
    """As many trials of the same task as are wanted, with containers on the disk and in memory."""
    in_memory, wrong = _rate(trials, str(MEMORY) if MEMORY.is_dir() else None)
    on_disk, wrong_on_disk = _rate(trials, None)
    return {
        "trials": trials,
        "jobs": JOBS,
        "rate": on_disk,
        "memory_rate": in_memory,
        "wrong": wrong + wrong_on_disk,
    }


def _rate(trials: int, place: str | None) -> tuple[float, int]:
    """Record one trial, then run many: how many a second, and how many did not pass.

    Args:
        trials: How many.
        place: Where all temporary files are.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as made:
        folder = Path(made)
        with _model() as url:
            _write(folder, url)
            _harness(folder, "--record-mode", "all", "--allow-live", "--out", "reports/first")
        recorded = folder / "cassettes" / "bench" / "sum"
        for number in range(1, trials):
            shutil.copyfile(recorded / "0.jsonl", recorded / f"{number}.jsonl")
        options = ["--tools", "live", "--jobs", str(JOBS)]
        options += ["--repeats", str(trials), "--out", "reports/many"]
        took_s = _clocked(lambda: _harness(folder, *options))
        lines = (folder / "reports" / "many" / "trials.jsonl").read_text().splitlines()
    outcomes = [json.loads(line)["outcome"] for line in lines]
    return len(outcomes) / took_s, trials - outcomes.count("passed")


def _starting(starts: int) -> dict[str, Any]:
    """A container that is made, runs one process and is removed, beside the process alone."""
    reason = problem(KIND)
    if reason is not None:
        raise SystemExit(f"{KIND} does not work here: {reason}")
    maker = sandbox(KIND)
    environment = Environment(context=Path("/"))

    def contained() -> None:
        container = maker.open(environment, {})
        try:
            result = container.run(["true"], timeout_s=60)
        finally:
            container.close()
        assert result.exit_code == 0, result.output

    def alone() -> None:
        subprocess.run(["true"], check=True)

    times = [(_clocked(contained), _clocked(alone)) for _ in range(starts + WARM)][WARM:]
    return {
        "start_ms": statistics.median(one for one, _ in times) * 1e3,
        "plain_ms": statistics.median(one for _, one in times) * 1e3,
    }


def _clocked(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _write(folder: Path, url: str) -> None:
    suite = folder / "suites" / "bench"
    for name, text in TASK.items():
        path = suite / "sum" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (suite / "suite.toml").write_text(SUITE.format(url=url), encoding="utf-8")


def _harness(folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "harness", "run", "bench", "--quiet", *options]
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(temporary)}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _model() -> Iterator[str]:
    """A server whose model gives one command, and then its last word."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(_answer(len(asked["messages"]) > 2)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _answer(is_last: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "sum.txt has the sum."}
    if not is_last:
        function = {"name": "shell", "arguments": json.dumps({"command": COMMAND})}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "bench-1",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "stop" if is_last else "tool_calls"}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


if __name__ == "__main__":
    positional, named = json.loads(sys.argv[1])
    print(json.dumps(main(*positional, **named)))
