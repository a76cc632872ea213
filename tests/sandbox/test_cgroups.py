"""Control groups of both versions, as far as files can stand for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.sandbox.limits.cgroups import Group, Parents, enabled, own_places

SYSTEMD = (
    "0::/user.slice/user-0.slice/session-3.scope\n",
    "30 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
)
IN_A_NAMESPACE = (
    "0::/\n",
    "30 24 0:27 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
)
VERSION_1 = (
    "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
    "31 30 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 30 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 30 0:30 / /proc rw - proc proc rw\n",
)
BOTH = (
    "8:pids:/\n4:memory:/jobs/a b\n0::/\n",
    "31 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "32 30 0:29 / /my\\040groups rw - cgroup cgroup rw,memory\n"
    "33 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
)


@pytest.mark.parametrize(
    ("told", "places"),
    [
        (SYSTEMD, {"": "/sys/fs/cgroup/user.slice/user-0.slice/session-3.scope"}),
        (IN_A_NAMESPACE, {"": "/sys/fs/cgroup"}),
        (
            VERSION_1,
            {
                "memory": "/sys/fs/cgroup/memory",
                "cpu": "/sys/fs/cgroup/cpu,cpuacct",
                "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
            },
        ),
        (
            BOTH,
            {
                "pids": "/sys/fs/cgroup/pids",
                "memory": "/my groups/jobs/a b",
                "": "/sys/fs/cgroup/unified",
            },
        ),
    ],
    ids=["systemd", "namespace", "version 1", "both"],
)
def test_own_groups_are_found(tmp_path: Path, told: tuple[str, str], places: dict[str, str]):
    (tmp_path / "cgroup").write_text(told[0])
    (tmp_path / "mountinfo").write_text(told[1])
    assert own_places(tmp_path) == {name: Path(place) for name, place in places.items()}


def test_where_nothing_is_told_there_are_no_groups(tmp_path: Path):
    assert own_places(tmp_path / "none") == {}
    assert enabled(tmp_path) == set()


def test_what_a_group_of_version_2_gives_those_in_it_is_read(tmp_path: Path):
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert enabled(tmp_path) == {"cpu", "memory", "pids"}


def test_a_group_of_version_2_has_the_limits_of_a_container(tmp_path: Path):
    group = Group(Parents(tmp_path, tmp_path, unified=True), processes=7, memory_bytes=1 << 20)
    assert group.killed_for_memory() == 0
    group.admit(4321)
    (made,) = tmp_path.iterdir()
    found = {path.name: path.read_text() for path in made.iterdir()}
    # Without a count of swap there is no file to limit it with.
    assert found == {"pids.max": "7", "memory.max": "1048576", "cgroup.procs": "4321"}
    (made / "memory.events").write_text("low 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert group.killed_for_memory() == 2


def test_where_version_2_counts_processes_alone_memory_is_left_to_others(tmp_path: Path):
    group = Group(Parents(tmp_path, None, unified=True), processes=7, memory_bytes=1 << 20)
    group.admit(4321)
    (made,) = tmp_path.iterdir()
    assert {path.name for path in made.iterdir()} == {"pids.max", "cgroup.procs"}
    assert group.killed_for_memory() == 0
