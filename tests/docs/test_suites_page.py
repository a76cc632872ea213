"""The page of suites: a newcomer can type what it says, word by word."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.loader.reading import validated
from harness.schema.suite_file import SuiteFile
from tests.cli.tiny import Message, model_server
from tests.docs.pages import ROOT, blocks
from tests.sandbox.here import working_sandbox

PAGE = ROOT / "docs" / "suites.md"
LOCAL = "http://127.0.0.1:8000/v1"
"""Where the page says that a model is served."""

ORDER = (
    "awk -F, 'NR > 1 {m[$1] += $2} END {for (p in m) print p, m[p]}' beds.csv | sort > order.txt"
)


def gardener(messages: list[Message]) -> str | tuple[str, dict[str, str]]:
    """A model that solves the page's task, and confirms it."""
    said = sum(message["role"] == "assistant" for message in messages)
    if said == 0:
        return "shell", {"command": ORDER}
    return "COMPLETED: order.txt is written." if said > 1 else "order.txt is written."


def newcomer(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Types all of it into a shell that has the commands, and nobody's settings."""
    who = {
        f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eux"],
        input=script,
        cwd=folder,
        env={**os.environ, **who, "PATH": path, "GIT_CONFIG_GLOBAL": "/dev/null"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_newcomer_gets_from_nothing_to_a_committed_recording(tmp_path: Path) -> None:
    working_sandbox()
    if shutil.which("git") is None:
        pytest.skip("install git: apt-get install git")
    script = "\n".join(block.text for block in blocks(PAGE) if block.language == "sh")
    with model_server(solve=gardener) as server:
        done = newcomer(script.replace(LOCAL, f"http://127.0.0.1:{server.port}/v1"), tmp_path)
    assert done.returncode == 0, done.stderr
    asked = len(server.asked)
    assert asked == 3, "the variants share their beginning, and replaying asks nobody"
    place = tmp_path / "my-suites"
    kept = subprocess.run(
        ["git", "ls-files"], cwd=place, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "cassettes/garden/order-seeds/0.jsonl" in kept
    assert "reports/baselines/garden.json" in kept
    assert not any(re.match("reports/[^b]", path) for path in kept)
    changed = newcomer("harness check suites/garden --set loop.max_iterations=1", place)
    assert changed.returncode == 1, changed.stdout + changed.stderr


def test_the_variants_that_it_shows_can_be_loaded() -> None:
    (block,) = (block for block in blocks(PAGE) if block.language == "toml")
    model = {"provider": "scripted", "name": "m"}
    whole = {"name": "s", "version": 1, "system": "", "model": model}
    file = validated(SuiteFile, whole | tomllib.loads(block.text), where=str(block))
    assert [variant.name for variant in file.variants] == [
        *("none", "curated", "on-demand", "house-rules"),
    ]
