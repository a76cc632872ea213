"""The commands a newcomer types, and the files they rest on."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*")

# Stands in for Python: makes environments whose commands only write down how they were called.
FAKE_PYTHON = """#!/bin/sh
case "$*" in
  "-m venv --clear .venv")
    rm -rf .venv
    mkdir -p .venv/bin
    echo "venv" >> calls
    for command in python harness; do
      printf '#!/bin/sh\\n[ "$1" = -c ] || echo "%s $*" >> calls\\n' $command > .venv/bin/$command
      chmod +x .venv/bin/$command
    done ;;
  *) exec python3 "$@" ;;
esac
"""


def make_executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments, "PYTHON=./fake-python"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def calls(folder: Path) -> list[str]:
    """What was called since the last time."""
    log = folder / "calls"
    lines = log.read_text(encoding="utf-8").splitlines()
    log.write_text("", encoding="utf-8")
    return lines


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "check out"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    make_executable(folder / "fake-python", FAKE_PYTHON)
    return folder


def test_demo_sets_up_once_and_without_developer_tools(checkout):
    assert make(checkout, "demo").returncode == 0
    first = calls(checkout)
    assert first[0] == "venv"
    assert first[-1] == "harness demo"
    assert [line for line in first if "[dev]" in line] == []

    again = make(checkout, "demo")
    assert calls(checkout) == ["harness demo"]
    assert (again.stdout, again.stderr) == ("", "")


def test_tests_add_the_developer_tools_to_the_environment_of_the_demo(checkout):
    make(checkout, "demo")
    calls(checkout)
    make(checkout, "test")
    installed, tested = calls(checkout)
    assert installed.endswith("-c constraints.txt -e .[dev]")
    assert tested.startswith("python -m pytest")


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_makes_the_environment_again(checkout, name):
    make(checkout, "demo")
    calls(checkout)
    stamp = (checkout / ".venv" / "runtime.stamp").stat().st_mtime
    os.utime(checkout / name, (stamp + 10, stamp + 10))
    make(checkout, "demo")
    assert calls(checkout)[0] == "venv"


def test_a_copied_checkout_makes_its_own_environment(checkout, tmp_path):
    make(checkout, "demo")
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy)
    calls(copy)
    make(copy, "demo")
    assert calls(copy)[0] == "venv"


def test_an_environment_whose_python_is_gone_is_made_again(checkout):
    make(checkout, "demo")
    calls(checkout)
    (checkout / ".venv" / "bin" / "python").unlink()
    make(checkout, "demo")
    assert calls(checkout)[0] == "venv"


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("#!/bin/sh\nexit 1\n", "is missing or older than 3.11; choose another: make PYTHON="),
        (
            '#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n',
            "has no venv module; on Debian: apt-get install python3-venv",
        ),
    ],
    ids=["too old", "without venv"],
)
def test_an_unusable_python_is_explained(checkout, python, expected):
    make_executable(checkout / "fake-python", python)
    done = make(checkout, "demo")
    assert done.returncode != 0
    assert done.stderr.startswith("./fake-python ")
    assert expected in done.stderr
    assert not (checkout / ".venv").exists()


def test_constraints_are_exact_versions_and_nothing_else():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not line.startswith("#") and not PIN.fullmatch(line)]
    assert odd == []


def test_every_requirement_has_a_constraint_that_satisfies_it():
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    extras = PROJECT["optional-dependencies"].values()
    texts = PROJECT["dependencies"] + [text for extra in extras for text in extra]
    requirements = [Requirement(text) for text in texts]
    unmet = [
        str(requirement)
        for requirement in requirements
        if requirement.name != PROJECT["name"]
        and pinned.get(canonicalize_name(requirement.name), "0") not in requirement.specifier
    ]
    assert unmet == []


def declared_entry_points() -> list[str]:
    plugins = PROJECT.get("entry-points", {}).get("pytest11", {})
    return [*PROJECT["scripts"].values(), *(f"{plugin}:" for plugin in plugins.values())]


@pytest.mark.parametrize("entry_point", declared_entry_points())
def test_an_entry_point_leads_somewhere(entry_point):
    module, _, attribute = entry_point.partition(":")
    loaded = importlib.import_module(module)
    assert not attribute or callable(getattr(loaded, attribute))


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("reports/2026-01-01-basics/run.json", True),
        ("reports/baselines/basics.json", False),
        ("harness/report/html.py", False),
        ("cassettes/basics/task/1.jsonl", False),
        (".venv/bin/python", True),
    ],
)
def test_git_keeps_baselines_and_recordings_but_no_runs(tmp_path, path, ignored):
    shutil.copy(ROOT / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    answer = subprocess.run(["git", "check-ignore", "-q", path], cwd=tmp_path, check=False)
    assert (answer.returncode == 0) is ignored
