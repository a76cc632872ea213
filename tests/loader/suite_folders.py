"""Small suites written to a temporary folder."""

from __future__ import annotations

from pathlib import Path

SUITE = """
name = "small"
version = 1
repeats = 2
system = "You work in /workspace."

[model]
provider = "openai"
name = "tiny"
base_url = "http://127.0.0.1:9/v1"
temperature = 0

[loop]
max_iterations = 8

[[variants]]
name = "baseline"
"""

OUTPUT = """
[metadata.harness.output]
schema = {type = "object", properties = {result = {type = "string"}}, required = ["result"]}
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def make_task(folder: Path, *, config: str = "", instruction: str = "Count the lines.") -> Path:
    write(folder / "task.toml", config)
    write(folder / "instruction.md", instruction)
    write(folder / "environment" / "workspace" / "data.txt", "one\ntwo\n")
    write(folder / "tests" / "test.sh", "echo 1 > /logs/verifier/reward.txt\n")
    write(folder / "solution" / "solve.sh", "true\n")
    return folder


def make_suite(folder: Path, *, suite: str = SUITE, tasks: tuple[str, ...] = ("count",)) -> Path:
    write(folder / "suite.toml", suite)
    for name in tasks:
        make_task(folder / name)
    return folder
