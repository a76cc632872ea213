"""The copy of a task's working folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.schema.environment import folder_environment
from harness.tools.workspace import Workspace


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "run.sh").write_text("echo\n")
    (folder / "run.sh").chmod(0o750)
    (folder / "sub" / "data").write_text("data")
    (folder / "link").symlink_to("sub/data")
    (folder / "dangling").symlink_to("/no/such/file")
    return folder


@pytest.fixture
def workspace(source: Path) -> Iterator[Workspace]:
    workspace = Workspace(folder_environment(source))
    yield workspace
    workspace.close()


def test_the_copy_has_links_and_permissions(workspace: Workspace):
    assert stat.S_IMODE((workspace.path / "run.sh").stat().st_mode) == 0o750
    assert os.readlink(workspace.path / "link") == "sub/data"
    assert os.readlink(workspace.path / "dangling") == "/no/such/file"
    assert (workspace.path / "sub" / "data").read_text() == "data"


def test_changes_do_not_reach_the_source(workspace: Workspace, source: Path):
    (workspace.path / "link").write_text("changed")
    (workspace.path / "new").touch()
    assert (source / "sub" / "data").read_text() == "data"
    assert not (source / "new").exists()


def test_nothing_is_copied_before_it_is_needed(tmp_path: Path):
    workspace = Workspace(folder_environment(tmp_path / "late"))
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "file").touch()
    assert (workspace.path / "file").exists()
    workspace.close()


def test_two_workspaces_of_one_folder_are_apart(workspace: Workspace, source: Path):
    other = Workspace(folder_environment(source))
    assert other.path != workspace.path
    other.close()
    assert workspace.path.exists()


def test_it_is_gone_after_close_whatever_the_agent_did_to_it(workspace: Workspace, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    base = workspace.path.parent
    (workspace.path / "link-out").symlink_to(outside)
    (workspace.path / "sub" / "closed").mkdir()
    (workspace.path / "sub" / "closed" / "file").touch()
    (workspace.path / "sub" / "closed").chmod(0)
    workspace.path.chmod(0)
    workspace.close()
    workspace.close()
    assert not base.exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


def test_a_closed_workspace_is_not_made_again(workspace: Workspace):
    workspace.close()
    with pytest.raises(InfrastructureError, match="closed"):
        _ = workspace.path


def test_a_folder_that_cannot_be_copied_is_named(tmp_path: Path):
    with pytest.raises(InfrastructureError, match="no-such-folder"):
        _ = Workspace(folder_environment(tmp_path / "no-such-folder")).path
