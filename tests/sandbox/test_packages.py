from __future__ import annotations

import ast
import base64
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.limits.keeper import Limits
from harness.sandbox.namespaces.bubblewrap import Bubblewrap
from harness.sandbox.namespaces.unshare import Unshare
from harness.sandbox.packages.equipping import equip
from harness.sandbox.packages.index_settings import IndexSettings, index_settings
from harness.schema.environment import Equipment
from harness.values import ProcessResult
from tests.sandbox.packing import Workshop, only_from, sdist, wheel, working_sandbox, workshop

PASSWORD = "correct-horse-battery"

ANY_FILES = "--no-binary=:none:"
"""An option that is about the kind of files: wheels alone are not tried first."""


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return workshop(tmp_path, working_sandbox())


def environments(shop: Workshop) -> list[Path]:
    return [path for path in (shop.cache / "packages").iterdir() if path.is_dir()]


@pytest.mark.parametrize("sandbox", [Bubblewrap(), Unshare()], ids=lambda sandbox: sandbox.kind)
def test_an_environment_holds_what_was_asked_for_and_nothing_of_the_system(
    sandbox: Bubblewrap | Unshare, tmp_path: Path
):
    try:
        sandbox.run(["true"], mounts=(), timeout_s=60, cwd="/tmp")
    except SandboxError as error:
        pytest.skip(f"{sandbox.kind} does not work on this host: {error}")
    shop = workshop(tmp_path, sandbox)
    wheel(shop.index, "greeter", "1.0", scripts={"greet": "greeter:main"}, requires=["helper"])
    wheel(shop.index, "greeter", "2.0")
    wheel(shop.index, "helper")

    equipped = shop.equip("greeter==1.0")

    assert shop.bash(equipped, "greet you").output == "greeter 1.0 you\n"
    seen = shop.bash(
        equipped,
        "python -c 'import sys; print([path for path in sys.path if \"packages\" in path])';"
        "echo ${VIRTUAL_ENV-unset}; touch /opt/venv/here || echo read-only; "
        "python -c 'import helper'",
    ).output
    assert seen.count("-packages'") == 1
    assert "unset\n" in seen
    assert seen.endswith("read-only\n")


def test_an_environment_is_built_once_for_the_same_requirements_in_order(shop: Workshop):
    for name in ("one", "two"):
        wheel(shop.index, name)

    first = shop.equip("one", "two")
    again = shop.equip("one", "two")
    other = shop.equip("two", "one")

    assert again == first
    assert other != first
    assert shop.told == ["installing one two, once", "installing two one, once"]


def test_two_that_need_an_environment_at_once_build_it_once(shop: Workshop):
    wheel(shop.index, "one")
    threads = [threading.Thread(target=shop.equip, args=("one",)) for _ in range(3)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(shop.told) == 1
    assert len(environments(shop)) == 1


def test_a_build_that_fails_says_what_pip_said_and_is_tried_again(shop: Workshop):
    with pytest.raises(SandboxError) as failed:
        shop.equip("absent==1.0")
    text = str(failed.value)
    assert text.startswith("cannot install 'absent==1.0' for python3")
    assert "PIP_INDEX_URL or pip.conf name another package index" in text
    assert text.endswith("No matching distribution found for absent==1.0")
    assert environments(shop) == []

    wheel(shop.index, "absent")
    assert shop.python(shop.equip("absent==1.0"), "import absent; absent.main()") == "absent 1.0"


def test_a_cache_that_cannot_be_written_is_named(shop: Workshop):
    shop.cache.write_text("a file")
    with pytest.raises(SandboxError, match=r"cache of environments '.*/cache' cannot be used"):
        shop.equip("one")


def test_an_index_that_cannot_be_reached_is_told_after_one_try(shop: Workshop):
    settings = IndexSettings({"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"})
    with pytest.raises(SandboxError) as failed:
        shop.equip("one", settings=settings)
    text = str(failed.value)
    assert "its package index cannot be reached" in text
    assert text.count("Connection refused") == 1


class Interrupted:
    """A sandbox that is interrupted when packages have been installed."""

    def __init__(self, sandbox: Bubblewrap | Unshare) -> None:
        self._sandbox = sandbox

    def run(self, command: Any, **options: Any) -> ProcessResult:
        done = self._sandbox.run(command, **options)
        if "install" in command:
            raise KeyboardInterrupt
        return done


def test_an_interrupted_build_leaves_nothing_that_is_used(shop: Workshop):
    wheel(shop.index, "one")
    settings = only_from(shop.index)

    with pytest.raises(KeyboardInterrupt):
        equip(
            Equipment(packages=("one",)), shop.cache, Interrupted(shop.sandbox), settings=settings
        )
    assert environments(shop) == []
    # As a process that was killed leaves it.
    (lock,) = (shop.cache / "packages").iterdir()
    broken = lock.with_suffix(".partial") / "env" / "bin"
    broken.mkdir(parents=True)
    (broken / "planted").write_text("broken")

    equipped = shop.equip("one")

    assert shop.python(equipped, "import one; one.main()") == "one 1.0"
    assert [path.name for path in environments(shop)] == [lock.stem]
    assert not list(shop.cache.rglob("planted"))


def test_what_is_installed_later_replaces_what_it_does_not_go_with(shop: Workshop):
    wheel(shop.index, "base", "1.0")
    wheel(shop.index, "base", "2.0")
    wheel(shop.index, "top", requires=["base==2.0"])

    equipped = shop.equip("base==1.0", "top", ANY_FILES)

    assert shop.python(equipped, "import base; base.main()") == "base 2.0"


def test_what_a_wheel_has_python_run_has_no_part_in_the_shared_downloads(shop: Workshop):
    plant = "import os; [open(f'{place}/planted', 'w') for place in PLACES if os.path.isdir(place)]"
    plant = plant.replace("PLACES", "('/opt/venv', '/opt/downloads')")
    wheel(shop.index, "hook", files={"hook.pth": f"{plant}\n"})
    wheel(shop.index, "base", "1.0")
    wheel(shop.index, "base", "2.0")
    wheel(shop.index, "top", requires=["base==2.0"])

    # pip runs once for each: together they do not go.
    shop.equip("hook", "base==1.0", "top")

    assert [path.parent.parent.name for path in shop.cache.rglob("planted")] == ["packages"]
    assert (shop.cache / "pip").is_dir()


def test_a_package_may_be_built_with_what_was_installed_before_it(shop: Workshop):
    wheel(shop.index, "builder")
    sdist(
        shop.index, "built", "1.0", "def look():\n    import builder\n    return builder.__name__"
    )

    equipped = shop.equip("builder", "built", "--no-build-isolation")

    assert shop.python(equipped, "import built; print(built.FOUND)") == "builder"


OTHER = "cp38-cp38-manylinux2014_x86_64"
"""What a wheel for another Python is tagged with."""


def test_a_version_for_other_pythons_is_replaced_by_the_closest_and_that_is_told(shop: Workshop):
    wheel(shop.index, "pinned", "1.4.0", tag=OTHER)
    for version in ("1.3", "1.10", "1.6.1", "2.0rc1"):
        wheel(shop.index, "pinned", version)
    wheel(shop.index, "top", requires=["pinned<2"])
    wanted = Equipment(
        packages=("top", "pinned==1.4"), tools=(("pinned==1.4.0", "top"),), stand_ins=True
    )

    equipped = shop.equip_with(wanted)

    version = Path(view.interpreter()).resolve().name.removeprefix("python")
    taken = f"has no wheel for Python {version}, and pinned==1.6.1 is used"
    assert equipped.notes == (f"pinned==1.4 {taken}", f"pinned==1.4.0 {taken}")
    assert shop.equip_with(wanted) == equipped
    script = "pip install -q top pinned==1.4 && python3 -m pinned"
    assert shop.bash(equipped, script).output == "pinned 1.6.1\n"
    script = "uvx --with top --with pinned==1.4.0 python -m pinned; pip install pinned==1.3"
    done = shop.bash(equipped, script).output
    assert done.startswith("pinned 1.6.1\n")
    assert "was not prepared: pinned==1.3" in done


def test_a_build_for_other_pythons_is_replaced_by_one_of_the_closest_version(shop: Workshop):
    wheel(shop.index, "pinned", "1.4.0+cpu", tag=OTHER)
    for version in ("1.3", "1.6.1", "1.6.1+cpu", "1.7"):
        wheel(shop.index, "pinned", version)

    equipped = shop.equip("pinned==1.4.0+cpu")

    (note,) = equipped.notes
    assert note.startswith("pinned==1.4.0+cpu has no wheel for Python ")
    assert note.endswith(", and pinned==1.6.1 is used")
    assert shop.python(equipped, "import pinned; pinned.main()") == "pinned 1.6.1+cpu"


def test_a_version_that_has_no_wheel_at_all_is_built_beside_wheels(shop: Workshop):
    wheel(shop.index, "old", "0.9")
    wheel(shop.index, "old", "2.0")
    sdist(shop.index, "old", "1.0", "def look():\n    return 'built'\n")
    wheel(shop.index, "pinned", "1.0", tag=OTHER)
    wheel(shop.index, "pinned", "1.1")

    equipped = shop.equip("old==1.0", "pinned==1.0")

    assert shop.python(equipped, "import old; print(old.FOUND)") == "built"
    assert shop.python(equipped, "import pinned; pinned.main()") == "pinned 1.1"


@pytest.mark.parametrize("requires", [(), ("setuptools",)])
def test_a_package_that_imports_what_setuptools_once_brought_finds_it(
    shop: Workshop, requires: tuple[str, ...]
):
    look = {"older.py": "def look():\n    import pkg_resources\n"}
    wheel(shop.index, "old", files=look, requires=requires)
    wheel(shop.index, "setuptools", "80.1", files={"pkg_resources/__init__.py": ""})
    wheel(shop.index, "setuptools", "82.0")
    wheel(shop.index, "plain")

    assert shop.python(shop.equip("old"), "import older; older.look()") == ""
    asked_for = shop.equip("old", "setuptools>81")
    assert shop.python(asked_for, "import setuptools; setuptools.main()") == "setuptools 82.0"
    without = "import importlib.util as found; print(found.find_spec('setuptools'))"
    assert shop.python(shop.equip("plain"), without) == "None"


def test_an_index_without_setuptools_is_no_failure(shop: Workshop):
    wheel(shop.index, "old", files={"older.py": "import pkg_resources\n"})
    assert shop.python(shop.equip("old"), "import old; old.main()") == "old 1.0"


def test_nothing_is_written_through_a_link_that_a_build_leaves(shop: Workshop, tmp_path: Path):
    kept = tmp_path / "kept"
    kept.write_text("kept")
    link = f"    os.symlink({str(kept)!r}, '/opt/venv/taken.json')\n"
    sdist(shop.index, "linking", "1.0", f"def look():\n{link}")

    equipped = shop.equip("linking==1.0")

    assert kept.read_text() == "kept"
    assert shop.bash(equipped, "cat /opt/venv/taken.json").output == "{}"


def test_modules_are_compiled_but_for_tests(shop: Workshop):
    wheel(shop.index, "one")
    equipped = shop.equip("one")
    done = shop.bash(equipped, "find /opt/venv/lib -name 'one.*.pyc' | wc -l").output
    assert done == "1\n"


LOOK = """\
def look():
    import pathlib
    found = {"env": dict(os.environ), "written": []}
    for place in PLACES:
        try:
            path = pathlib.Path(place, "planted")
            path.write_text("planted")
            found["written"].append(place)
        except OSError:
            pass
    found["seen"] = [place for place in PLACES if os.path.exists(place)]
    found["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))
    # What has to be removed afterwards.
    closed = pathlib.Path("/opt/venv/closed/inner")
    closed.mkdir(parents=True)
    closed.parent.chmod(0)
    return found
"""


def test_the_build_of_a_hostile_package_reaches_nothing_of_the_host(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_OF_THE_HOST", PASSWORD)
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (shop.cache / "pip").mkdir(parents=True)
    places = [str(home), str(home / ".ssh"), str(Path.home() / ".ssh"), str(shop.cache)]
    places += ["/opt/downloads", "/opt/pip/pip", "/usr/bin", str(shop.index), str(Path.cwd())]
    sdist(shop.index, "hostile", "1.0", f"PLACES = {places!r}\n{LOOK}")

    equipped = shop.equip("hostile", ANY_FILES)

    found = ast.literal_eval(shop.python(equipped, "import hostile; print(hostile.FOUND)"))
    assert found["written"] == []
    assert set(found["seen"]) == {"/opt/pip/pip", "/usr/bin", str(shop.index)}
    assert PASSWORD not in str(found["env"])
    assert found["processes"] < 20
    assert not list(tmp_path.rglob("planted"))


HOG = """\
def look():
    for number in range(8):
        with open(f"/opt/venv/big{number}", "wb") as file:
            file.write(bytes(10_000_000))
    import signal
    signal.pause()
"""


def test_a_build_that_fills_the_disk_is_stopped(shop: Workshop):
    sdist(shop.index, "hog", "1.0", HOG)
    small = Limits(storage_mb=50)

    with pytest.raises(SandboxError, match="cannot install 'hog ") as failed:
        equip(
            Equipment(packages=("hog", ANY_FILES)),
            shop.cache,
            shop.sandbox,
            settings=only_from(shop.index),
            limits=small,
        )

    assert "50 MiB" in str(failed.value)
    assert not list(shop.cache.rglob("big*"))


def test_where_wheels_will_do_no_code_of_a_package_is_run(shop: Workshop):
    wheel(shop.index, "steady", "1.0")
    sdist(shop.index, "steady", "2.0", "def look():\n    raise SystemExit('was run')\n")

    equipped = shop.equip("steady")

    assert shop.python(equipped, "import steady; steady.main()") == "steady 1.0"


class _Index(SimpleHTTPRequestHandler):
    """Lists and files for who knows the password."""

    def do_GET(self) -> None:
        wanted = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") == f"Basic {wanted}":
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=index")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    handler: Callable[..., _Index] = partial(_Index, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_password_of_an_index_is_used_and_stays_nowhere(shop: Workshop):
    (shop.index / "private").mkdir()
    wheel(shop.index / "private", "private")
    with serving(shop.index) as port:
        url = f"http://me:{PASSWORD}@127.0.0.1:{port}"
        settings = IndexSettings({"PIP_INDEX_URL": url})
        equipped = shop.equip("private", settings=settings)
        assert shop.python(equipped, "import private; private.main()") == "private 1.0"
        with pytest.raises(SandboxError) as failed:
            shop.equip(f"absent @ {url}/absent.whl", settings=settings)

    texts = [str(failed.value), *shop.told, repr(settings)]
    assert "http://…@127.0.0.1" in shop.told[-1]
    assert "http://…@127.0.0.1" in str(failed.value)
    assert not [text for text in texts if PASSWORD in text]
    files = [path for path in shop.cache.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.slow
def test_real_packages_are_installed_from_the_index_of_this_host(tmp_path: Path):
    shop = workshop(tmp_path, working_sandbox())
    tool = ("pytest", "pytest-json-ctrf==0.3.5", "pytest==8.4.1")
    try:
        equipped = shop.equip_with(
            Equipment(tools=(tool,), stand_ins=True), index_settings(os.environ)
        )
    except SandboxError as error:
        if "cannot be reached" in str(error):
            pytest.skip("the package index cannot be reached")
        raise
    done = shop.bash(
        equipped,
        "echo 'def test_it(): pass' > test_it.py\n"
        "uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf ctrf.json && "
        "cat ctrf.json",
    )
    assert done.exit_code == 0, done.output
    assert '"passed": 1' in done.output
