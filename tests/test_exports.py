"""What importing the package gives and does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import harness

PACKAGE = Path(harness.__file__).parent

# Imports every module and reports what the imports did besides defining things.
IMPORT_EVERYTHING = """
import importlib, json, os, pkgutil, sys, threading

done = []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        done.append(f"writes {arguments[0]}")
    if event in ("os.mkdir", "os.putenv", "os.system", "subprocess.Popen", "socket.connect"):
        done.append(f"{event} {arguments[0]!r}")

import harness
import anthropic, openai, vcr
sys.addaudithook(watch)
names = [found.name for found in pkgutil.walk_packages(harness.__path__, "harness.")]
for name in names:
    importlib.import_module(name)
print(json.dumps({"names": names, "done": done, "threads": threading.active_count()}))
"""


def test_importing_any_module_does_nothing_but_define():
    process = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", IMPORT_EVERYTHING],
        capture_output=True,
        text=True,
        check=False,
        cwd=PACKAGE.parent,
    )
    assert (process.returncode, process.stderr) == (0, "")
    report = json.loads(process.stdout)
    assert "harness.errors" in report["names"]
    assert report["done"] == []
    assert report["threads"] == 1


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert {str(folder) for folder in folders if not (folder / "__init__.py").is_file()} == set()


def test_users_get_the_types():
    assert (PACKAGE / "py.typed").is_file()


def test_the_top_level_exports_what_it_lists():
    exported = list(getattr(harness, "__all__", ()))
    assert exported == sorted(exported)
    assert [name for name in exported if not hasattr(harness, name)] == []
