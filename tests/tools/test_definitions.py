"""Tools that files describe and that packages bring along."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.containers import Sandbox
from harness.errors import ConfigurationError
from harness.schema.environment import folder_environment
from harness.schema.record import Json
from harness.tools.definitions import defined_tool
from harness.tools.entry_points import installed_tools
from harness.tools.machine import Machine
from harness.tools.registry import Registry
from harness.values import Effect, ToolInvocation, ToolOutcome
from tests.sandbox.here import working_sandbox

COMMAND = """
name: find_text
description: Find a text in a file.
parameters:
  type: object
  properties:
    text: {type: string}
    file: {type: string, default: notes.txt}
    most: {type: integer, default: 5}
  required: [text]
command: [grep, -m, "{most}", --, "{text}", "{file}"]
"""

FUNCTION = """
name: join
description: Join words.
parameters: {type: object, properties: {words: {type: array}}}
function: my_functions:join
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    path = tmp_path / "tool.yaml"

    def write(text: str) -> Path:
        path.write_text(text)
        return path

    return write


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from, and forgotten afterwards."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and name.startswith("my_"):
            del sys.modules[name]


def no_sandbox() -> Sandbox:
    raise AssertionError("nobody may ask for a sandbox")


NOWHERE = Machine(folder_environment(Path("/nowhere")), no_sandbox)


def invoke(registry: Registry, name: str, **arguments: Json) -> ToolOutcome:
    return registry.invoke(ToolInvocation("call-1", name, arguments, 0, 60))


def test_a_command_says_what_it_would_run(write: Callable[[str], Path]):
    registry = Registry([defined_tool(write(COMMAND), NOWHERE)])
    (spec,) = registry.specs()
    assert (spec.name, spec.description) == ("find_text", "Find a text in a file.")
    assert registry.is_sequential("find_text")
    assert registry.effects("find_text", {"text": "a {file} $(rm)", "most": 1}) == (
        Effect("command", "grep -m 1 -- 'a {file} $(rm)' notes.txt"),
    )


def test_a_command_gets_arguments_in_its_places_and_no_shell_sees_them(
    write: Callable[[str], Path], tmp_path: Path
):
    source = tmp_path / "source"
    source.mkdir()
    (source / "notes.txt").write_text("one; echo\ntwo $HOME\n")
    machine = Machine(folder_environment(source), working_sandbox)
    registry = Registry([defined_tool(write(COMMAND), machine)])
    assert invoke(registry, "find_text", text="; e").content == "one; echo"
    assert invoke(registry, "find_text", text="$HOME").content == "two $HOME"
    assert invoke(registry, "find_text", text="o", most=1).content == "one; echo"
    assert invoke(registry, "find_text", text="none").content == "[exit code 1]"
    machine.close()


def test_a_function_is_called_by_name(write: Callable[[str], Path], modules: Path):
    (modules / "my_functions.py").write_text("def join(words):\n    return '-'.join(words)\n")
    registry = Registry([defined_tool(write(FUNCTION), NOWHERE)])
    assert invoke(registry, "join", words=["a", "b"]).content == "a-b"
    assert registry.effects("join", {}) is None
    assert not registry.is_sequential("join")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: find_text", "", ["name: missing; add it"]),
        (
            "name: find_text",
            "nam: find_text",
            ["nam: unknown key", "did you mean 'name'?"],
        ),
        ("description: Find a text in a file.", "", ["description: missing; add it"]),
        ("name: find_text", "name: [1]", ["name = [1]: input should be a valid string"]),
        ("name: find_text", "name: a\nname: b", ["not valid YAML", "'name' is there twice"]),
        ("name: find_text", "name: {", ["not valid YAML"]),
        ("name: find_text", "name: !!python/name:os.system", ["not valid YAML"]),
        ("command: [", "function: a:b\ncommand: [", ["give either function or command"]),
        ('command: [grep, -m, "{most}", --, "{text}", "{file}"]', "", ["give either function"]),
        ('command: [grep, -m, "{most}", --, "{text}", "{file}"]', "command: []", ["command = []"]),
        ("[grep", '["{text}"', ["command[0] = '{text}'", "must be fixed"]),
        ("{file}", "{fil}", ["command[5] = '{fil}'", "'fil' must be a parameter"]),
        (
            "required: [text]",
            "required: []",
            ["command[4] = '{text}'", "required or has a default"],
        ),
        ("type: object", "type: objekt", ["parameters: not a JSON Schema", "objekt"]),
        ("type: object", "type: array", ["parameters.type = 'array': must be 'object'"]),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_file_and_key(
    write: Callable[[str], Path], old: str, new: str, words: list[str]
):
    assert old in COMMAND
    path = write(COMMAND.replace(old, new))
    with pytest.raises(ConfigurationError) as caught:
        defined_tool(path, NOWHERE)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert [word for word in words if word not in text] == []
    assert "\n" not in text


@pytest.mark.parametrize("text", ["", "- a\n", "words\n"])
def test_a_file_without_keys_is_told_what_to_hold(write: Callable[[str], Path], text: str):
    with pytest.raises(ConfigurationError, match="write one tool as keys and values"):
        defined_tool(write(text), NOWHERE)


def test_a_tool_without_parameters_takes_none(write: Callable[[str], Path]):
    path = write("name: where\ndescription: Say where we are.\ncommand: [pwd]\n")
    tool = defined_tool(path, NOWHERE)
    assert tool.spec.parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("join", ["write it as module:name"]),
        ("my_missing:join", ["cannot be imported", "my_missing"]),
        ("my_broken:join", ["cannot be imported", "ZeroDivisionError"]),
        ("my_functions:split", ["no such function"]),
        ("my_functions:number", ["no such function"]),
    ],
)
def test_a_function_that_is_not_there_is_refused(
    write: Callable[[str], Path],
    modules: Path,
    function: str,
    words: list[str],
):
    (modules / "my_functions.py").write_text("number = 1\n")
    (modules / "my_broken.py").write_text("1 / 0\n")
    path = write(FUNCTION.replace("my_functions:join", function))
    with pytest.raises(ConfigurationError) as caught:
        defined_tool(path, NOWHERE)
    for word in (f"{path}: function = {function!r}", *words):
        assert word in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"none\.yaml: cannot be read: No such file"):
        defined_tool(tmp_path / "none.yaml", NOWHERE)


@pytest.fixture
def package(modules: Path) -> Path:
    """An installed package that brings tools along."""
    info = modules / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[harness.tools]\nz-add = my_package:add\nready = my_package:ready\n"
        "number = my_package:number\nbroken = my_package:nothing\n"
    )
    (modules / "my_package.py").write_text(
        "from harness.tools.function import function_tool\n"
        "def add(a: int, b: int = 1) -> int:\n    '''Add two.'''\n    return a + b\n"
        "ready = function_tool(add, name='ready_made')\n"
        "number = 1\n"
    )
    return modules


@pytest.mark.usefixtures("package")
def test_an_installed_package_brings_functions_and_tools():
    tools = installed_tools(["z-add", "ready"])
    assert [tool.spec.name for tool in tools] == ["z-add", "ready_made"]
    assert tools[0].spec.description == "Add two."
    assert invoke(Registry(tools), "z-add", a=2).content == "3"


def test_all_installed_tools_come_sorted(package: Path):
    entries = package / "my_package-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[harness.tools]\nz-add = my_package:add\nready = my_package:ready\n")
    assert [tool.spec.name for tool in installed_tools()] == ["ready_made", "z-add"]


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", ["'missing'", "harness.tools", "broken, number, ready, z-add"]),
        ("number", ["'number'", "'my_package:number'", "neither a function nor a tool"]),
        ("broken", ["'broken'", "'my_package:nothing'", "AttributeError"]),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_refused(name: str, words: list[str]):
    with pytest.raises(ConfigurationError) as caught:
        installed_tools([name])
    assert [word for word in words if word not in str(caught.value)] == []
