"""Help: complete, with examples, and instant."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from harness.cli import COMMANDS, group


def commands() -> dict[str, click.Command]:
    """Every command, `baseline show` included, by what is typed."""
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        found[name] = command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for inner in command.list_commands(context):
                one = command.get_command(context, inner)
                assert one is not None
                found[f"{name} {inner}"] = one
    return found


@pytest.mark.parametrize("name", commands())
def test_every_command_shows_an_example_that_can_be_typed(harness, name):
    done = harness(*name.split(), "--help")
    assert (done.code, done.err) == (0, "")
    example = done.out.split("Example: ", 1)[1]
    assert example.startswith(f"harness {name.split()[0]}" if name != "baseline" else "harness run")
    assert done.out.startswith(f"Usage: harness {name} ")


@pytest.mark.parametrize(
    "name", [n for n, c in commands().items() if not isinstance(c, click.Group)]
)
def test_every_command_can_print_json_be_quiet_and_say_more(name):
    options = {option for p in commands()[name].params for option in p.opts}
    assert {"--json", "--quiet", "-v"} <= options


@pytest.mark.parametrize(
    "name", [n for n, c in commands().items() if not isinstance(c, click.Group)]
)
def test_every_option_is_explained(name):
    options = [p for p in commands()[name].params if isinstance(p, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_the_list_of_commands_loads_click_alone():
    code = (
        "import sys\nfrom harness.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit as ended: code = ended.code\n"
        "print(code, *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *loaded = done.stdout.splitlines()[-1].split()
    assert code == "0"
    heavy = {"pydantic", "anthropic", "openai", "vcr", "httpx2", "jinja2", "jsonschema", "yaml"}
    assert heavy.isdisjoint(loaded)
    for name, summary in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert summary in done.stdout


def test_the_version_is_printed(harness):
    assert harness("--version").out.startswith("harness ")


def test_no_command_prints_the_help(harness):
    done = harness()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: harness")
