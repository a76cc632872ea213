from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.packages import equipping
from harness.sandbox.packages.equipping import Equipped, equip, installations, tool_key
from harness.sandbox.packages.pips import own_pip, unpacked
from harness.schema.environment import Equipment
from harness.values import Mount
from tests.sandbox.packing import Workshop, wheel, working_sandbox, workshop

OWN = Path(view.interpreter()).resolve().name


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return workshop(tmp_path, working_sandbox())


def test_without_equipment_nothing_is_shown_and_nothing_is_built(shop: Workshop):
    assert shop.equip() == Equipped()
    assert not shop.cache.exists()


def test_without_a_cache_what_would_have_to_be_built_is_refused():
    sandbox = working_sandbox()
    assert equip(Equipment(stand_ins=True), None, sandbox).path
    with pytest.raises(SandboxError, match="the sandbox has no cache to keep it in"):
        equip(Equipment(packages=("one",)), None, sandbox)


def test_a_python_that_is_not_here_is_told_and_the_one_that_is_here_is_taken(shop: Workshop):
    wheel(shop.index, "one")
    wanted = Equipment(packages=("one",), python="3.99.1")

    equipped = shop.equip_with(wanted)

    note = f"Python 3.99 is asked for, and {OWN} is used"
    assert equipped.notes == (note,)
    assert shop.equip_with(Equipment(python="3.99")) == Equipped(notes=(note,))
    assert shop.python(equipped, "import one; one.main()") == "one 1.0"


def test_the_python_that_is_asked_for_needs_no_note(shop: Workshop):
    assert shop.equip_with(Equipment(python=OWN.removeprefix("python"))) == Equipped()
    assert shop.equip_with(Equipment(python="latest")) == Equipped()


def python_at(prefix: Path, name: str, script: str) -> None:
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    (prefix / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
    (prefix / "bin" / name).chmod(0o755)
    (prefix / "lib" / name).mkdir(parents=True)
    (prefix / "lib" / name / "os.py").touch()


def test_a_python_beside_the_harness_own_is_used_if_it_works(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pythons = tmp_path / "pythons"
    (pythons / "own" / "bin").mkdir(parents=True)
    python_at(pythons / "broken", "python3.99", "exit 127")
    # No Python but this host's own can be had here: it stands for another one.
    python_at(pythons / "works", "python3.99", f'exec {view.interpreter()} "$@"')
    python_at(pythons / "works", "python3.98", "exit 1")
    monkeypatch.setattr(sys, "base_prefix", str(pythons / "own"))
    wheel(shop.index, "one")

    equipped = shop.equip_with(Equipment(packages=("one",), python="3.99"))

    assert equipped.notes == ()
    assert Mount(pythons / "works", "/opt/python3.99") in equipped.mounts
    assert shop.python(equipped, "import one; one.main()") == "one 1.0"
    (pythons / "works" / "bin" / "python3").symlink_to("python3.99")
    bare = shop.equip_with(Equipment(python="3.99"))
    assert shop.bash(bare, "command -v python3").output == "/opt/python3.99/bin/python3\n"
    assert len(shop.told) == 1, "no environment is built for nothing"
    assert len(shop.equip_with(Equipment(python="3.98")).notes) == 1


def pip_wheel(prefix: Path, name: str, version: str) -> None:
    """Have a Python bring the pip that is installed here, as if it were of another version."""
    folder = prefix / "lib" / name / "ensurepip" / "_bundled"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"pip-{version}-py3-none-any.whl", "w") as archive:
        for path in sorted(own_pip().rglob("*.py")) + sorted(own_pip().rglob("*.pem")):
            inside = Path("pip", path.relative_to(own_pip()))
            archive.write(path, inside)
        archive.writestr("pip/version.txt", version)


def test_a_python_that_is_too_old_for_the_pip_here_is_used_with_the_pip_that_it_brings(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pythons = tmp_path / "pythons"
    (pythons / "own" / "bin").mkdir(parents=True)
    python_at(pythons / "bare", "python3.5", f'exec {view.interpreter()} "$@"')
    python_at(pythons / "old", "python3.8", f'exec {view.interpreter()} "$@"')
    for version in ("9.0.1", "21.2.4"):
        pip_wheel(pythons / "old", "python3.8", version)
    monkeypatch.setattr(sys, "base_prefix", str(pythons / "own"))
    wheel(shop.index, "one")
    wanted = Equipment(packages=("one",), python="3.8", stand_ins=True)

    equipped = shop.equip_with(wanted)

    assert equipped.notes == ()
    assert Mount(pythons / "old", "/opt/python3.8") in equipped.mounts
    done = shop.bash(
        equipped,
        "cat /opt/pip/pip/version.txt; python -m one; pip install one | cut -d' ' -f1-4;"
        "pip download absent 2>&1 | tail -n 1",
    ).output
    (satisfied, failed) = ("Requirement already satisfied: one\n", "found for absent\n")
    assert done.startswith(f"21.2.4one 1.0\n{satisfied}")
    assert done.endswith(failed)
    assert shop.equip_with(wanted) == equipped
    # Without a pip of its own nothing could be installed for it.
    note = f"Python 3.5 is asked for, and {OWN} is used"
    assert shop.equip_with(Equipment(packages=("one",), python="3.5")).notes == (note,)


def test_a_pip_that_cannot_be_read_is_told_without_a_place_of_this_machine(tmp_path: Path):
    with pytest.raises(SandboxError, match="cannot be unpacked") as raised:
        unpacked(tmp_path / "absent.whl", tmp_path / "pips")
    assert str(tmp_path) not in str(raised.value)


def test_a_pip_that_cannot_be_unpacked_is_told(tmp_path: Path):
    broken = tmp_path / "pip-20.0-py3-none-any.whl"
    broken.write_text("no archive")
    with pytest.raises(SandboxError, match="pip of an older Python cannot be unpacked"):
        unpacked(broken, tmp_path / "pips")


def test_a_tool_has_the_python_that_it_asks_for(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    own, pythons = view.interpreter(), tmp_path / "pythons"
    (pythons / "own" / "bin").mkdir(parents=True)
    # What it makes can be told from what the host's own makes.
    made = f'{own} "$@" && if [ "$2" = venv ]; then touch "$4/of-3.99"; fi'
    python_at(pythons / "other", "python3.99", made)
    monkeypatch.setattr(sys, "base_prefix", str(pythons / "own"))
    wheel(shop.index, "one", scripts={"one": "one:main"})
    tools = (("--python=3.98", "one"), ("--python=3.99", "one"), ("one",))

    equipped = shop.equip_with(Equipment(tools=tools, stand_ins=True))

    assert equipped.notes == (f"Python 3.98 is asked for, and {OWN} is used",)
    prefix = "python -c 'import os, sys; print(os.listdir(sys.prefix))'"
    for options in ("-p 3.99", "-p3.99.1", "--python=3.99", "--python python3.99"):
        done = shop.bash(equipped, f"uvx {options} --with one {prefix} && uvx {options} one")
        assert ("of-3.99" in done.output, "one 1.0\n" in done.output) == (True, True), done.output
    for options in ("", "-p 3.98", "--python system"):
        done = shop.bash(equipped, f"uvx {options} --with one {prefix} && uvx {options} one")
        assert ("of-3.99" in done.output, "one 1.0\n" in done.output) == (False, True), done.output


def test_pythons_of_the_system_are_not_looked_for_beside_it():
    assert list(installations(Path("/usr"))) == list(installations(Path("/usr/local"))) == []


def test_stand_ins_come_before_packages_and_both_before_the_system(shop: Workshop):
    wheel(shop.index, "one", scripts={"curl": "one:main"})
    with_both = shop.equip_with(Equipment(packages=("one",), stand_ins=True))
    without = shop.equip("one")

    script = "command -v curl; command -v python3; command -v pip"
    both = "/opt/stand-ins/bin/curl\n/opt/stand-ins/bin/python3\n/opt/stand-ins/bin/pip\n"
    assert shop.bash(with_both, script).output == both
    own = "/opt/venv/bin/curl\n/opt/venv/bin/python3\n/opt/venv/bin/pip\n"
    assert shop.bash(without, script).output == own


def test_tools_that_need_the_same_in_another_order_share_an_environment():
    assert tool_key(("a==1", "b")) == tool_key(("b", "a==1", "b"))
    assert tool_key(("a==1", "b")) != tool_key(("a==1",))


def test_every_stand_in_can_be_run_and_says_what_it_is_for():
    folder = Path(equipping.__file__).with_name("stand_ins") / "bin"
    scripts = sorted(folder.iterdir())
    assert {"apt", "apt-get", "curl", "pip", "pip3", "pipx", "sudo", "uv", "uvx", "wget"} <= {
        path.name for path in scripts
    }
    for path in scripts:
        lines = path.read_text().splitlines()
        assert os.access(path, os.X_OK), path
        assert lines[0] == "#!/bin/sh", path
        assert lines[1].startswith("# "), path
        assert len(lines) <= 50, path


def test_the_modules_of_stand_ins_hide_no_module_of_the_harness():
    assert not [path for path in sys.path if path.endswith("stand_ins/python")]
