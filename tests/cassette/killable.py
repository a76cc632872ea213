"""Records conversations in children that may be killed at any moment.

Run as a script it takes one job a line, `CASSETTE NOTES PORT TURNS`, forks, and lets the child
record through the real SDK. It prints the child's process id, and its exit code at its end.
Importing the SDK once makes twenty kills cheap.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai

from harness.cassette import use
from harness.schema.results import RecordMode

ROOT = Path(__file__).parents[2]


def converse(cassette: Path, notes: Path, port: int, turns: int, mode: RecordMode) -> list[str]:
    """A conversation that writes down each answer as soon as the agent has it."""
    said: list[str] = []
    messages: list[Any] = [{"role": "user", "content": "go"}]
    url = f"http://127.0.0.1:{port}/v1"
    with (
        notes.open("a") as written,
        openai.OpenAI(api_key="unused", base_url=url, max_retries=0) as client,
        use(cassette, record_mode=mode),
    ):
        for turn in range(turns):
            text = _ask(client, messages, stream=turn % 2 == 1)
            os.write(written.fileno(), f"{turn} {text}\n".encode())
            said.append(text)
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": f"and then? {'and ' * 50}"},
            ]
    return said


def _ask(client: openai.OpenAI, messages: list[Any], *, stream: bool) -> str:
    if not stream:
        done = client.chat.completions.create(model="tiny", messages=messages)
        return str(done.choices[0].message.content)
    pieces = client.chat.completions.create(model="tiny", messages=messages, stream=True)
    return " ".join(piece.choices[0].delta.content or "" for piece in pieces).strip()


class Recorder:
    """The process that forks the children."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, *job: object) -> int:
        """Begin a recording; gives its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, job)) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def wait(self) -> int:
        """Its exit code; minus the signal that killed it."""
        assert self._process.stdin is not None
        code = int(self._answer())
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return code

    def kill(self, pid: int) -> int:
        """Kill it, unless it has just ended."""
        os.kill(pid, signal.SIGKILL)
        return self.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def recorder() -> Iterator[Recorder]:
    """Start the process that forks."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cassette.killable"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield Recorder(process)
        process.communicate()


def main() -> None:
    """Take jobs until there are no more."""
    for line in sys.stdin:
        cassette, notes, port, turns = line.split()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                converse(Path(cassette), Path(notes), int(port), int(turns), "new_episodes")
                code = 0
            finally:
                os._exit(code)
        print(pid, flush=True)
        # It stays a zombie while its end is told: a late kill must not meet another process.
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        killed = ended.si_code == os.CLD_KILLED
        print(-ended.si_status if killed else ended.si_status, flush=True)
        sys.stdin.readline()
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
