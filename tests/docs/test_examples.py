"""The examples of the documentation run, and print what the pages say."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.agents.definition import load_agent
from harness.errors import ConfigurationError
from harness.loader.reading import validated
from harness.loader.suite import load_suite
from harness.runner.plan import plan
from harness.runner.trial import TrialSettings, run_trial
from harness.sandbox.choose import sandbox
from harness.schema.environment import folder_environment
from harness.schema.suite_file import SuiteFile
from harness.tools.definitions import defined_tool
from harness.tools.machine import Machine
from tests.docs.pages import PAGES, ROOT, Block, blocks, printed, script, write_files
from tests.providers.lookalikes import openai_chat
from tests.providers.lookalikes.server import serving

LOCAL = "http://127.0.0.1:8000/v1"
"""Where the pages say that a local model is served."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    file = tmp_path / "page.py"
    with serving(openai_chat.CHAT) as server:
        file.write_text(script(page).replace(LOCAL, f"{server.url}/v1"))
        run = subprocess.run(
            [sys.executable, "-W", "error", str(file)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == printed(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_python_and_says_what_it_prints(page: Path) -> None:
    assert script(page).count("print(") == len(printed(page)) > 0


def files(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


@pytest.mark.parametrize("block", files("toml", "yaml"), ids=str)
def test_a_file_that_a_page_shows_can_be_loaded(block: Block, tmp_path: Path) -> None:
    assert block.file is not None, "the sentence before it must end with its name"
    write_files(block.page, tmp_path)
    kind, path = block.file.partition("/")[0], tmp_path / block.file
    if kind == "agents":
        load_agent(path)
    elif kind == "suite.toml":
        model = {"provider": "scripted", "name": "m"}
        whole = {"name": "s", "version": 1, "system": "", "model": model}
        whole["variants"] = [{"name": "v"}]
        validated(SuiteFile, whole | tomllib.loads(block.text), where=str(block))
    elif kind == "tools":
        defined_tool(path, Machine(folder_environment(tmp_path), sandbox))
    else:
        assert kind == "scenarios"
        explained = {}
        for cell in plan(load_suite(path)):
            for spec in cell.specs:
                trial = run_trial(spec, None, TrialSettings(cassettes=tmp_path))
                explained[spec.trial_id] = trial.record.scores["scenario"].explanation
        assert explained
        assert set(explained.values()) == {""}


def test_a_key_that_does_not_exist_would_be_noticed(tmp_path: Path) -> None:
    block, *_ = (
        block
        for block in files("toml")
        if block.file == "suite.toml" and "max_iterations" in block.text
    )
    model = {"provider": "scripted", "name": "m"}
    whole = {"name": "s", "version": 1, "system": "", "model": model}
    wrong = tomllib.loads(block.text.replace("max_iterations", "max_iteration"))
    with pytest.raises(ConfigurationError, match="max_iteration"):
        validated(SuiteFile, whole | wrong, where=str(block))
