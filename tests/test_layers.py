"""The rules that keep the package readable, held on its syntax trees."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "harness"

LAYERS = (
    ("errors",),
    ("schema",),
    ("values",),
    ("protocols", "containers", "redaction"),
    ("loader", "providers", "sandbox", "tools", "loop", "scorers"),
    ("cassette",),
    ("runner", "agents"),
    ("backends", "analysis"),
    ("report", "proxy"),
    ("cli", "pytest_plugin"),
)
LAYER_OF = {name: level for level, names in enumerate(LAYERS) for name in names}

READ_THE_ENVIRONMENT = ("harness/cli/", "harness/pytest_plugin", "harness/cassette/using.py")
"""The ways in: what lies below gets what it needs handed down."""
VENDOR_SDKS = ("anthropic", "openai", "vcr", "httpx2")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def part_of(path: Path) -> str:
    """`loop` for harness/loop/engine.py, `errors` for harness/errors.py."""
    return path.with_suffix("").parts[1]


def imported_parts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and first part below `harness` of everything the module imports from the package."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for name in (f"{prefix}{alias.name}" for alias in node.names):
            package, *rest = name.split(".")
            if package == "harness" and rest:
                yield node.lineno, rest[0]


def imported_from(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Line and first part below a package of what the module imports from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                if name.startswith(f"{package}."):
                    yield node.lineno, name.removeprefix(f"{package}.").partition(".")[0]


def may_import(importer: str, imported: str) -> bool:
    if importer == imported:
        return True
    return LAYER_OF[imported] < LAYER_OF[importer]


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_part_of_the_package_has_a_layer():
    parts = {part_of(path) for path, _ in modules()} - {"__init__", "__main__"}
    assert parts <= set(LAYER_OF)


def test_imports_only_go_down_and_never_to_a_sibling():
    wrong = [
        f"{path}:{line} imports harness.{imported}"
        for path, tree in modules()
        if part_of(path) in LAYER_OF
        for line, imported in imported_parts(tree)
        if not may_import(part_of(path), imported)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("loop", "protocols", True),
        ("loop", "loop", True),
        ("loop", "cassette", False),
        ("cassette", "providers", True),
        ("providers", "cassette", False),
        ("loop", "runner", False),
        ("schema", "errors", True),
        ("cli", "report", True),
        ("cli", "pytest_plugin", False),
    ],
)
def test_the_import_rule_itself(importer, imported, allowed):
    assert may_import(importer, imported) is allowed


CASSETTE = (
    ("format", "playback"),
    ("request",),
    ("response",),
    ("file", "secrets"),
    ("show",),
    ("replay", "care", "convert"),
    ("http",),
    ("direct", "using"),
    ("vcr_users",),
)
LOADER = (
    ("explaining",),
    ("reading",),
    ("output", "overrides"),
    ("dockerfile",),
    ("task",),
    ("plain",),
    ("scenarios",),
    ("suite",),
)
SANDBOX = (
    ("excerpt", "view", "tty", "engine"),
    ("limits",),
    ("files",),
    ("namespaces",),
    ("packages",),
    ("container",),
    ("directory", "docker"),
    ("choose",),
)
STACKS = {"cassette": CASSETTE, "loader": LOADER, "sandbox": SANDBOX}
"""Folders and modules of the layers that are stacks of their own."""


@pytest.mark.parametrize("layer", STACKS)
def test_the_parts_of_a_stack_import_only_what_lies_below_them(layer):
    level = {name: number for number, names in enumerate(STACKS[layer]) for name in names}
    wrong = []
    for path, tree in modules():
        _, part, *rest = path.with_suffix("").parts
        if part != layer or rest == ["__init__"]:
            continue
        for line, imported in imported_from(tree, f"harness.{layer}"):
            if imported != rest[0] and level[imported] >= level[rest[0]]:
                wrong.append(f"{path}:{line} imports harness.{layer}.{imported}")
    assert wrong == []


def test_nothing_is_imported_inside_a_function():
    wrong = [
        f"{path}:{inner.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert wrong == []


def test_no_module_is_over_400_lines():
    lines = {
        path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path, _ in modules()
    }
    assert {path: count for path, count in lines.items() if count > 400} == {}


def test_only_the_ways_in_read_the_environment():
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        if not path.as_posix().startswith(READ_THE_ENVIRONMENT)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv")
    ]
    assert wrong == []


def test_only_the_ways_in_ask_where_the_user_is_at_home():
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        if not path.as_posix().startswith(READ_THE_ENVIRONMENT)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        if ast.unparse(node) == "Path.home" or node.attr in ("expanduser", "expandvars")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "code",
    [
        "import harness",
        "import harness.cli",
        "import harness.cli, contextlib\n"
        "with contextlib.suppress(SystemExit): harness.cli.main(['--help'])",
    ],
    ids=["harness", "harness.cli", "harness --help"],
)
def test_no_vendor_sdk_is_imported_before_a_call_needs_it(code):
    output = run_python(f"{code}\nimport sys\nprint()\nprint(*sys.modules)")
    loaded = output.splitlines()[-1].split()
    assert "harness" in loaded
    assert set(VENDOR_SDKS).isdisjoint(loaded)
