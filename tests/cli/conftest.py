"""A recorded suite, and the command line in a folder of the test's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from tests.cli.tiny import Done, record_tiny

Harness = Callable[..., Done]


@pytest.fixture
def harness(capfd: pytest.CaptureFixture[str]) -> Harness:
    """Runs a command in this process, in the current folder."""

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_tiny(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def recorded(recorded_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: suites/tiny, its cassettes, its baseline, and the run that made them.

    The server that was recorded is gone.
    """
    folder = tmp_path / "checkout"
    shutil.copytree(recorded_once, folder)
    monkeypatch.chdir(folder)
    return folder
