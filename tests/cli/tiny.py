"""A suite of two small tasks, a model server that solves them, and the command line around both."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from harness.schema.results import TrialRecord
from tests.loopback import on_loopback

SUITE = """
name = "tiny"
version = 1
repeats = 2
system = "You work in /workspace."

[model]
provider = "openai"
name = "small-1"
base_url = "http://127.0.0.1:{port}/v1"
temperature = 0.5

[loop]
max_iterations = 4

[[variants]]
name = "plain"

[[variants]]
name = "confirmed"
loop.confirm = {{enabled = true}}
"""

FRUIT = "Write the word apple into the file fruit.txt."
LINES = "Say how many lines data.txt has."

Message = dict[str, Any]
Answer = str | tuple[str, dict[str, Any]]
"""Text, or a tool call: its name and arguments."""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def make_task(folder: Path, instruction: str, *, test: str, data: str = "one\ntwo\n") -> None:
    write(folder / "task.toml", "")
    write(folder / "instruction.md", instruction)
    write(folder / "environment" / "workspace" / "data.txt", data)
    passed = 'echo 1 > "$reward" || echo 0 > "$reward"'
    write(folder / "tests" / "test.sh", f"reward=/logs/verifier/reward.txt\n{test} && {passed}\n")


def make_suite(folder: Path, port: int) -> Path:
    """Task `fruit` passes; task `lines` is answered with a wrong number and fails."""
    write(folder / "suite.toml", SUITE.format(port=port))
    make_task(folder / "fruit", FRUIT, test='[ "$(cat /workspace/fruit.txt)" = apple ]')
    make_task(folder / "lines", LINES, test="grep -q 2 /logs/agent/answer.txt")
    return folder


def solve(messages: list[Message]) -> Answer:
    """What the model says next: one tool call, then text, then a confirmation."""
    said = [message for message in messages if message["role"] == "assistant"]
    if messages[-1]["role"] == "user" and len(said) == 2:
        return "COMPLETED: checked"
    if len(said) == 1:
        return "I see three lines."
    if "fruit.txt" in text_of(messages[1]):
        return "write_file", {"path": "fruit.txt", "content": "apple"}
    return "read_file", {"path": "data.txt"}


def text_of(message: Message) -> str:
    content = message["content"] or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@dataclass
class ModelServer:
    """Speaks chat completions on loopback, and remembers what it was asked."""

    solve: Callable[[list[Message]], Answer] = solve
    hangs_from: int | None = None
    """Number of the first request that is never answered, counted from 1; nor is any after it."""
    refusal: str = ""
    """Text that every request is refused with."""
    port: int = 0
    asked: list[list[Message]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


def completion(answer: Answer, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(answer, str):
        message["content"] = answer
    else:
        function = {"name": answer[0], "arguments": json.dumps(answer[1])}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "small-1",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


@contextmanager
def model_server(**settings: Any) -> Iterator[ModelServer]:
    """Serve until the block ends."""
    state = ModelServer(**settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            state.asked.append(body["messages"])
            number = len(state.asked)
            if state.hangs_from is not None and number >= state.hangs_from:
                state.hanging.set()
                state.released.wait()
                self.close_connection = True
                return
            answer = {"error": {"message": state.refusal}}
            if not state.refusal:
                answer = completion(state.solve(body["messages"]), number)
            data = json.dumps(answer).encode()
            self.send_response(400 if state.refusal else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Tests are quiet."""

    with on_loopback(Handler) as url:
        state.port = int(url.rpartition(":")[2])
        try:
            yield state
        finally:
            state.released.set()


@dataclass(frozen=True)
class Done:
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command_line(*arguments: str) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-W", "error", "-c", "from harness.cli import main; main()", *arguments]


def in_subprocess(*arguments: str, folder: Path) -> Done:
    """Run the command in a process of its own."""
    done = subprocess.run(
        command_line(*arguments), cwd=folder, capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def record_tiny(folder: Path) -> Path:
    """Make suites/tiny in a folder, record it from a server that then ends, keep the baseline."""
    with model_server() as server:
        make_suite(folder / "suites" / "tiny", server.port)
        run = in_subprocess(
            *("run", "tiny", "--record-mode", "all", "--out", "reports/first", "-q"), folder=folder
        )
    kept = in_subprocess("baseline", "update", "reports/first", folder=folder)
    assert (run.code, run.err, kept.code, kept.err) == (0, "", 0, ""), (run, kept)
    return folder


def trials_of(folder: Path) -> list[TrialRecord]:
    """The trials of a run, sorted, without what may differ between two runs of the same."""
    lines = (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    trials = [TrialRecord.model_validate_json(line) for line in lines]
    same = {"duration_s": 0.0, "finished_at": None, "served": 0, "recorded": 0, "sandbox": None}
    trials = [trial.model_copy(update=same) for trial in trials]
    return sorted(trials, key=lambda trial: (trial.task, trial.variant, trial.repeat))


def calls_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Trial -> (model calls served from the cassette, model calls recorded)."""
    lines = (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    trials = [TrialRecord.model_validate_json(line) for line in lines]
    return {trial.trial_id: (trial.served, trial.recorded) for trial in trials}
