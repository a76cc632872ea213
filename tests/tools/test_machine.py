"""The container of a trial, made when something first needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.containers import Sandbox
from harness.errors import InfrastructureError
from harness.schema.environment import folder_environment
from harness.tools.machine import Machine
from tests.sandbox.here import working_sandbox


def no_sandbox() -> Sandbox:
    raise AssertionError("nobody may ask for a sandbox")


def test_nothing_is_made_before_it_is_needed(tmp_path: Path):
    machine = Machine(folder_environment(tmp_path / "late"), working_sandbox)
    assert (machine.workdir, machine.opened) == ("/workspace", None)
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "file").touch()
    assert machine.container.names(".") == ("file",)
    assert machine.opened is machine.container
    machine.close()
    assert machine.opened is None


def test_one_that_was_never_needed_is_closed_without_a_sandbox(tmp_path: Path):
    machine = Machine(folder_environment(tmp_path), no_sandbox)
    machine.close()
    with pytest.raises(InfrastructureError, match="closed"):
        _ = machine.container


def test_variables_are_those_given_or_the_environments_own(tmp_path: Path):
    environment = folder_environment(tmp_path).model_copy(update={"env": {"NAME": "written"}})
    for env, value in ((None, "written"), ({"NAME": "given"}, "given"), ({}, "")):
        machine = Machine(environment, working_sandbox, env)
        result = machine.container.run(["bash", "-c", "echo $NAME"], timeout_s=60)
        assert result.output == f"{value}\n"
        machine.close()
