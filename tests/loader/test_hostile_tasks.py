"""Task folders that somebody made to do harm: each is an error that names its file, and in time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import BadInputError
from harness.loader.suite import load_suite
from harness.loader.task.loading import load_task
from harness.loader.task.skills import load_skill
from tests.loader.suite_folders import write
from tests.loader.test_harbor_task import harbor_task

DEEP = 5000
LAUGHS = "\n".join(
    ["a0: &a0 [lol, lol]", *(f"a{n + 1}: &a{n + 1} [{f'*a{n}, ' * 9}*a{n}]" for n in range(12))]
)
MERGES = "\n".join(
    ["b0: &b0 {k: v}", *(f"b{n + 1}: &b{n + 1} {{<<: [*b{n}, *b{n}]}}" for n in range(40))]
)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (f"a = {'[' * DEEP}", "nested too deeply"),
        (f"{'a.' * DEEP}a = 1", "a.a.a…: nested too deeply"),
        (f"a = {'1' * DEEP}", "not valid TOML"),
        ("[environment]\nmemory_mb = 99999999999999999999", "environment.memory_mb = 9999"),
        (f"[environment]\nmemory = '{'9' * 400}G'", "environment.memory = "),
        ("[environment.env]\n'LANG=x' = '1'", "environment.env"),
        ("[verifier.env]\n'' = '1'", "'' cannot be the name of a variable"),
        ("[environment.env]\nA = 'a\\u0000'".replace("'", '"'), "environment.env.A"),
        ("[environment.healthcheck]\ncommand = ''\ninterval_sec = 1e300", "interval_sec = 1e+300"),
        ("[verifier]\ntimeout_sec = 1e300", "verifier.timeout_sec = 1e+300"),
        ('[environment.env]\n"A\\u0000" = "a"', "has a NUL character"),
    ],
)
def test_settings_that_no_one_can_read_are_named(tmp_path: Path, config: str, said: str):
    folder = harbor_task(tmp_path / "t", config)
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    assert str(raised.value).startswith(f"{folder / 'task.toml'}: ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (f"description: {'1' * 6000}", "not valid YAML"),
        ("m: &a [*a]", "circles"),
        (f"m: {'[' * 1200}", "nested too deeply"),
        (LAUGHS, "120 YAML aliases"),
        (MERGES, "80 YAML aliases"),
        (f"m: {'a' * 70_000}", "longer than 65536 characters"),
        ("m: 2020-13-45", "not valid YAML"),
    ],
)
@pytest.mark.parametrize("name", ["SKILL.md", "task.md"])
def test_a_front_matter_that_no_one_can_read_is_named(
    tmp_path: Path, name: str, head: str, said: str
):
    path = write(tmp_path / "t" / name, f"---\n{head}\n---\nDo it.\n")
    with pytest.raises(BadInputError) as raised:
        load_skill(path) if name == "SKILL.md" else load_task(path.parent)
    assert str(raised.value).startswith(f"{path}: ")
    assert said in str(raised.value)


def test_a_name_that_is_not_utf_8_is_named(tmp_path: Path):
    folder = harbor_task(tmp_path / "t")
    Path(os.fsdecode(os.fsencode(folder / "environment") + b"/a\xff")).write_text("x")
    with pytest.raises(BadInputError, match=r"environment/a\\xff: .* not UTF-8; rename it"):
        load_task(folder)


def test_one_of_them_does_not_keep_the_others_from_being_checked(tmp_path: Path):
    harbor_task(tmp_path / "good")
    harbor_task(tmp_path / "deep", f"a = {'[' * DEEP}")
    harbor_task(tmp_path / "vast", "[environment]\nmemory_mb = 99999999999999999999")
    broken: list[tuple[Path, BadInputError]] = []
    suite = load_suite(tmp_path, needs_model=False, on_broken=broken.extend)
    assert [task.name for task in suite.tasks] == ["good"]
    assert [place.name for place, _ in broken] == ["deep", "vast"]
    with pytest.raises(BadInputError) as raised:
        load_suite(tmp_path, needs_model=False)
    first, *lines = str(raised.value).splitlines()
    assert first == "2 tasks cannot be loaded:"
    assert ["/deep/task.toml: " in lines[0], "/vast/task.toml: " in lines[1]] == [True, True]


def test_a_dockerignore_is_read_in_time_or_named(tmp_path: Path):
    folder = harbor_task(tmp_path / "t", dockerfile="FROM ubuntu:24.04\nCOPY . /app\n")
    path = write(folder / "environment" / ".dockerignore", f"{'*a' * 100}\n{'**/' * 100}b\n")
    write(folder / "environment" / ("a" * 200), "x")
    load_task(folder)
    path.write_text("a\n" * 10_000)
    with pytest.raises(BadInputError, match="longer than 16384 characters"):
        load_task(folder)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("ENV A=aaaaaaaa\n" + "ENV A=$A$A\n" * 30, ":15: stands for more than 65536 characters"),
        (f"ENV A={'a' * 60_000}\n" + "ENV B=$A.\n" * 20, ":19: all variables have over 1048576"),
        (f"ARG A={'a' * 60_000}\n" + "ARG B=$A.\n" * 20, ":19: all variables have over 1048576"),
        ("ENV =x\n", ":2: ENV: a variable has no name"),
        ("RUN true\n" * 40_000, "longer than 262144 characters"),
        ("ENV A=\0\n", "line 2 has a NUL character"),
    ],
)
def test_a_dockerfile_that_no_machine_can_hold_is_named(tmp_path: Path, lines: str, said: str):
    folder = harbor_task(tmp_path / "t", dockerfile=f"FROM ubuntu:24.04\n{lines}")
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    assert str(raised.value).startswith(str(folder / "environment" / "Dockerfile"))
    assert said in str(raised.value)


def test_a_script_whose_words_double_is_read(tmp_path: Path):
    folder = harbor_task(tmp_path / "t")
    write(folder / "tests" / "test.sh", "A=aaaaaaaa\n" + "A=$A$A\n" * 60)
    load_task(folder)


def test_here_documents_that_do_not_end_are_read_in_time(tmp_path: Path):
    marks = "RUN " + "<<A " * 20_000 + "\n" + "b\n" * 50_000
    folder = harbor_task(tmp_path / "t", dockerfile=f"FROM ubuntu:24.04\n{marks}")
    with pytest.raises(BadInputError, match=r"Dockerfile:3: unknown instruction 'B'"):
        load_task(folder)
