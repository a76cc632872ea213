from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loader.task.scripts import Script, files_at, on_top, read_script
from harness.sandbox.packages import equipping
from harness.schema.environment import Equipment
from tests.loader.suite_folders import write

PYTEST = ("pytest", "pytest-json-ctrf==0.3.5", "pytest==8.4.1")


def test_what_a_script_installs_is_there_for_the_next_one():
    options = ("--find-links", "https://x.example")
    base = Equipment(packages=("a==1", *options), python="3.12")
    earlier = Equipment(
        packages=(*options, "a==2", "s"), tools=(("t",),), python="3.12", stand_ins=True
    )
    later = Equipment(
        packages=("a==1", *options, "b", "--find-links", "https://y.example"), python="3.12"
    )
    assert on_top(base, earlier, later) == Equipment(
        packages=(*options, "a==2", "s", "b", "--find-links", "https://y.example"),
        tools=(("t",),),
        python="3.12",
        stand_ins=True,
    )


@pytest.mark.parametrize(
    ("earlier", "later", "both"), [("3.9", "3.12", "3.9"), ("3.12", "3.9", "3.9")]
)
def test_the_version_that_one_of_two_scripts_asks_for_is_that_of_both(
    earlier: str, later: str, both: str
):
    one, two, base = (Equipment(python=version) for version in (earlier, later, "3.12"))
    assert on_top(base, one, two).python == both


def read(folder: Path, text: str) -> Script:
    path = write(folder / "tests" / "test.sh", text)
    files = files_at({"/tests": [folder / "tests"]}, lambda _: None)
    return read_script(path, files, "tests/test.sh", place="/tests", cwd="/app")


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("uvx --with pytest==8.4.1 --with pytest-json-ctrf==0.3.5 pytest --ctrf x /tests", PYTEST),
        ("uvx \\\n -w pytest==8.4.1 \\\n -w pytest-json-ctrf==0.3.5 \\\n pytest -rA", PYTEST),
        (
            "uvx -p 3.13 --with=pytest==8.4.1,pytest-json-ctrf==0.3.5 pytest",
            ("--python=3.13", *PYTEST),
        ),
        ("uv run --python=cpython-3.9.2 --with a x", ("--python=3.9", "a")),
        ("uvx -p3.12 -w a --python $V b", ("a", "b")),
        ("uvx --python /opt/own/bin/python3 a", ("a",)),
        ("uv tool run --with pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest", PYTEST),
        ("V=8.4.1\nuvx --with pytest==$V --with 'pytest-json-ctrf==0.3.5' pytest", PYTEST),
        ("if command -v uvx; then\n uvx --with a b | tee x\nfi", ("a", "b")),
        ("uvx --from 'c[x]==1' --with a d --with e", ("a", "c[x]==1")),
        ("uvx --python 3.12 --isolated ruff@0.5.0 check", ("--python=3.12", "ruff==0.5.0")),
        ("uvx ruff@latest", ("ruff",)),
        ("uv run --with b --with a python /tests/check.py", ("a", "b")),
        ("uv run --no-project -w a pytest -w", ("a",)),
        ("uvx --with-requirements /tests/requirements.txt pytest", ("a==1", "b", "pytest")),
        ("OUT=1 uvx pytest || true", ("pytest",)),
        ("uvx --with 'a>=1,<2, b' 'c[x,y]'", ("a>=1,<2", "b", "c[x,y]")),
        ("uvx --with a --with b python -m b -rA | tee x", ("a", "b")),
        ("cd /tests && uvx --with b --with a python3.12 <<'E'\nimport a\nE", ("a", "b")),
    ],
)
def test_a_tools_environment_is_the_sorted_set_of_what_it_is_run_with(
    tmp_path: Path, line: str, tool: tuple[str, ...]
):
    write(tmp_path / "tests" / "requirements.txt", "a==1\nb\n")
    script = read(tmp_path, f"#!/bin/bash\n{line}\n")
    assert script.tools == (tool,)
    assert (script.packages, script.problems) == ((), ())
    assert script.stand_ins


@pytest.mark.parametrize(
    ("line", "packages"),
    [
        ("pip3 install --break-system-packages pytest==8.4.1 a", ("pytest==8.4.1", "a")),
        ("uv venv .tb && source .tb/bin/activate\nuv pip install a==1 b", ("a==1", "b")),
        ("uv init --python 3.12\nuv add a==1\nuv add b\nuv run pytest", ("a==1", "b")),
        ("python3 -m pip install -q a >/dev/null 2>&1 || pip install a", ("a",)),
        ("pip install -r /tests/requirements.txt", ("a==1", "b")),
        ("cd /tests\nbash /tests/setup.sh\nexit 0", ("c",)),
        ("cd /tests && pip install -r requirements.txt", ("a==1", "b")),
        ("cd / && cd tests\npip install -r ./requirements.txt", ("a==1", "b")),
        ('cd "$(dirname "$0")"\npip install -r requirements.txt', ("a==1", "b")),
        ('cd "$(dirname "${BASH_SOURCE[0]}")" || exit\n. setup.sh', ("c",)),
        ("pip install -r ../tests/requirements.txt", ("a==1", "b")),
        ("source /tests/setup.sh", ("c",)),
        ("export P=a\npip install $P", ("a",)),
        ('P="a==1 b"\npip install $P', ("a==1", "b")),
        ("PIP='python3 -m pip'\nNO=\n$PIP install $NO a", ("a",)),
        ('GO="cd /tests"\n$GO\n. setup.sh', ("c",)),
    ],
)
def test_packages_of_a_script_and_of_those_it_calls(
    tmp_path: Path, line: str, packages: tuple[str, ...]
):
    write(tmp_path / "tests" / "requirements.txt", "a==1\nb\n")
    write(tmp_path / "tests" / "setup.sh", "pip install c\nsource /tests/test.sh\n")
    script = read(tmp_path, line)
    assert (script.packages, script.tools, script.problems) == (packages, (), ())


@pytest.mark.parametrize(
    "line",
    ["uvx --version", "command -v uvx pip", "uv --help", "pip list", "uv run a", "which uvx"],
)
def test_calls_that_install_nothing_are_none(tmp_path: Path, line: str):
    script = read(tmp_path, line)
    assert (script.packages, script.tools, script.problems) == ((), (), ())


def test_options_take_the_same_words_here_and_where_uvx_is_run(tmp_path: Path):
    stand_in = Path(equipping.__file__).with_name("stand_ins") / "lib" / "prepared.sh"
    [others] = re.findall(r"-\[ifcPC\] \| (.*?)\)\s+used=2", stand_in.read_text(), re.DOTALL)
    options = re.findall(r"--[a-z-]+", others)
    assert {"--overrides", "--only-group"} <= set(options)
    for option in options:
        assert read(tmp_path, f"uvx {option} value tool").tools == (("tool",),), option


def test_what_is_installed_and_cannot_be_had_is_told_with_its_line(tmp_path: Path):
    script = read(tmp_path, "\npip install /tests/x.whl\nuvx --with $(date) b\n")
    assert script.problems == (
        "tests/test.sh:2: /tests/x.whl: installs files of the task's own",
        "tests/test.sh:3: names a package only when it runs",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apt-get update", True),
        ("curl -LsSf https://astral.sh/uv/install.sh | sh", True),
        ("pip install a", True),
        ("python3 -m pip install a", True),
        ("python3 -m venv /tmp/own", True),
        ("python3 -m ensurepip", True),
        ("python3 /tests/check.py\necho 'curl pip'\n", False),
    ],
)
def test_stand_ins_are_for_scripts_that_call_what_wants_a_network(
    tmp_path: Path, text: str, expected: bool
):
    assert read(tmp_path, text).stand_ins == expected


def test_a_script_adds_to_what_the_machine_has(tmp_path: Path):
    base = Equipment(packages=("a==1", "b"), python="3.12")
    script = read(tmp_path, "pip install b==2 a c\nuvx d\n")
    assert script.equipment(base) == Equipment(
        packages=("a==1", "b==2", "c"), tools=(("d",),), python="3.12", stand_ins=True
    )
    assert read(tmp_path, "true").equipment(base) == base
    assert read(tmp_path, "pip install a==1 b").equipment(base).packages == base.packages


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("uv venv --python 3.10.13 /opt/own\n/opt/own/bin/python -m pip install a", "3.10"),
        ("uv venv -p3.9 && uv pip install a", "3.9"),
        ("uv init --python=3.11\nuv add a", "3.11"),
        ("virtualenv -p /usr/bin/python3.9 /x", "3.9"),
        ("python3 -m virtualenv /x --python python3.10", "3.10"),
        ("python3.9 -m venv /x && uv venv --python 3.10", "3.10"),
        ("python3.11 -m pip install a", "3.11"),
        ("pip3.11 install a", "3.11"),
        ("uv venv --python $V x; python3 -m pip install -p 3.9", "3.12"),
        ("python3.11 /x.py; pip3.11 list; python3.11 -m; uv venv --python system", "3.12"),
    ],
)
def test_a_script_may_ask_for_another_python(tmp_path: Path, text: str, version: str):
    assert read(tmp_path, text).equipment(Equipment(python="3.12")).python == version


def test_the_python_of_packages_that_the_machine_has_is_kept(tmp_path: Path):
    base = Equipment(packages=("a==1",), python="3.12")
    assert read(tmp_path, "uv venv --python 3.10").equipment(base).python == "3.12"


def test_files_outside_of_the_folders_are_not_read(tmp_path: Path):
    write(tmp_path / "secret.txt", "secret-package\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "link.txt").symlink_to("../secret.txt")
    script = read(tmp_path, "pip install -r /tests/link.txt -r /tests/../secret.txt -r gone.txt\n")
    assert script.packages == ()
    assert len(script.problems) == 3


@pytest.mark.parametrize("folder", ["/app", '"$(mktemp -d)"', "$UNKNOWN"])
def test_files_elsewhere_are_not_taken_for_those_beside_the_script(tmp_path: Path, folder: str):
    write(tmp_path / "tests" / "requirements.txt", "a\n")
    script = read(tmp_path, f"cd {folder}\npip install -r requirements.txt\n")
    assert (script.packages, len(script.problems)) == ((), 1)


def test_of_folders_laid_over_one_another_the_last_counts(tmp_path: Path):
    for name, packages in (("all", "a\n"), ("step", "b\n")):
        write(tmp_path / name / "r.txt", packages)
    write(tmp_path / "all" / "only.txt", "c\n")
    path = write(tmp_path / "all" / "test.sh", "pip install -r /t/r.txt -r /t/only.txt\n")
    files = files_at({"/t": [tmp_path / "all", tmp_path / "step"]}, lambda _: None)
    assert read_script(path, files, "test.sh", place="/t", cwd="/").packages == ("b", "c")


WORDS = st.sampled_from(
    [
        "pip",
        "install",
        "-r",
        "uvx",
        "--with",
        "uv",
        "run",
        "--from",
        "$(",
        "&&",
        "\n",
        "a",
        "=",
        "-",
    ]
)


@given(st.lists(WORDS, max_size=10), st.text(max_size=10))
def test_any_text_is_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], text: str
):
    folder = tmp_path_factory.getbasetemp() / "scripts"
    text = text.encode(errors="replace").decode()
    script = read(folder, f"{' '.join(words)} {text}")
    assert all(tool == tuple(sorted(set(tool))) for tool in script.tools)
