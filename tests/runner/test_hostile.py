"""Hostile agents and tests, end to end: each ends as a clear result, and harms nothing."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from harness.schema.suite import Task
from tests.runner.live_trials import played, results, shell, turns_of
from tests.runner.made_tasks import PASS, make_step, make_task, passes_if, write

HONEST = passes_if("grep -q apple /app/fruit.txt")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return one_step(tmp_path)


def one_step(folder: Path, test: str = HONEST, **more: object) -> Task:
    step = make_step(folder / "task", test=test, verifier={"timeout_s": 20})
    return make_task(folder / "task", step, **more)


def processes(marker: str) -> list[int]:
    """The processes of this host whose command line has a word in it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if marker.encode() in line:
            found.append(int(entry.name))
    return found


def test_a_fork_bomb_ends_with_its_command(task, tmp_path):
    marker = f"bomb-{uuid.uuid4().hex}"
    bomb = f"bash -c 'bomb() {{ bomb | bomb & }}; bomb; sleep 60' {marker}"
    trial = played(task, shell(bomb, "echo apple > fruit.txt"), tmp_path, tool_timeout_s=1)
    assert trial.record.termination_reason == "completed"
    assert trial.record.outcome == "passed"
    assert processes(marker) == []


def test_what_an_agent_starts_does_not_outlive_its_command_nor_the_trial(task, tmp_path):
    marker = f"late-{uuid.uuid4().hex}"
    forge = f"while sleep 0.05; do {PASS}; done"
    daemon = f"setsid -f bash -c 'trap \"\" HUP TERM; {forge}' {marker}; (sleep 60 {marker} &)"
    trial = played(task, shell(daemon, "pgrep -f -c late- || echo none"), tmp_path)
    assert processes(marker) == []
    assert trial.record.outcome == "failed"


def test_links_lead_nowhere_outside_of_the_machine(task, tmp_path):
    secret = write(tmp_path / "secret.txt", "the host's own")
    links = (
        f"ln -s {secret} leak; ln -s {tmp_path} folder; ln -s / root; cat leak folder/secret.txt"
    )
    turns = turns_of(
        ("shell", {"command": links}),
        ("read_file", {"path": "leak"}),
        ("read_file", {"path": "folder/secret.txt"}),
        ("read_file", {"path": f"root{secret}"}),
        ("write_file", {"path": "leak", "content": "changed"}),
        ("list_dir", {"path": "folder"}),
    )
    trial = played(task, turns, tmp_path, error_threshold=0)
    assert len(results(trial)) == 6
    assert "the host's own" not in "".join(results(trial))
    assert secret.read_text() == "the host's own"


def test_a_link_that_the_agent_left_is_no_way_for_the_verifier_either(tmp_path):
    secret = write(tmp_path / "secret.txt", "the host's own")
    task = one_step(
        tmp_path, test="cat /logs/agent/answer.txt /app/*; echo 0.5 > /logs/verifier/reward.txt"
    )
    links = (
        f"rm -rf /logs/agent/answer.txt; ln -s {secret} /logs/agent/answer.txt; ln -s {secret} x"
    )
    trial = played(task, shell(links), tmp_path)
    assert trial.verdict is not None
    assert "the host's own" not in trial.verdict.log
    assert secret.read_text() == "the host's own"


def test_nothing_of_the_host_is_in_proc(task, tmp_path, monkeypatch):
    marker = f"host-{uuid.uuid4().hex}"
    monkeypatch.setenv("HOST_ONLY", marker)
    look = "cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo; ls /proc | grep -c '^[0-9]'"
    (said,) = results(played(task, shell(look), tmp_path))
    assert marker not in said
    assert str(tmp_path) not in said
    assert str(os.getpid()) not in said.splitlines()
    assert int(said.splitlines()[-1]) < 10


def test_output_without_end_is_cut(task, tmp_path):
    trial = played(task, shell("yes", "echo apple > fruit.txt"), tmp_path, tool_timeout_s=1)
    assert len(results(trial)[0]) < 20_000
    assert trial.record.outcome == "passed"


def test_disk_and_memory_are_the_tasks_own_and_run_out(tmp_path):
    task = one_step(tmp_path, environment={"storage_mb": 20, "memory_mb": 200})
    commands = (
        "head -c 10G /dev/zero > big && echo all of it",
        "for n in $(seq 1000); do head -c 10M /dev/zero > f$n; done; echo all of them",
        "rm -f f* big; python3 -c 'bytearray(10**9)'; echo not held",
        "echo apple > fruit.txt",
    )
    trial = played(task, shell(*commands), tmp_path)
    one, many, memory, _ = results(trial)
    assert "File size limit exceeded" in one or "[killed: its files" in one
    assert "all of it" not in one
    assert "[killed: its files take more than 20 MiB]" in many
    assert "all of them" not in many
    assert "Killed" in memory
    assert trial.record.outcome == "passed"


FORGERIES = {
    "reward.txt": "echo 1 > /logs/verifier/reward.txt",
    "reward.json": "echo '{\"reward\": 1}' > /logs/verifier/reward.json",
    "tests": f"mkdir -p /tests; echo '{PASS}' > /tests/test.sh; chmod 555 /tests /tests/test.sh",
    "tests as a link": f"mkdir x; echo '{PASS}' > x/test.sh; ln -s /app/x /tests",
    "folder as a link": "mkdir /app/v; echo 1 > /app/v/reward.txt; rm -rf /logs/verifier;"
    " ln -s /app/v /logs/verifier",
    "logs as a link": "mkdir -p /app/l/verifier; echo 1 > /app/l/verifier/reward.txt; rm -rf /logs;"
    " ln -s /app/l /logs",
    "no way in": "echo 1 > /logs/verifier/reward.txt; chmod 000 /logs/verifier /logs",
    "no file": "rm -rf /logs; touch /logs",
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
@pytest.mark.parametrize("test", [HONEST, "true"], ids=["judged", "silent"])
def test_what_an_agent_puts_in_the_verifiers_place_does_not_count(tmp_path, forgery, test):
    trial = played(one_step(tmp_path, test), shell(forgery), tmp_path)
    assert trial.record.termination_reason == "completed"
    assert trial.verdict is not None
    assert trial.verdict.rewards in ({}, {"reward": 0})
    assert trial.record.outcome != "passed"


SABOTAGE = {
    "tests": "rm -rf /tests; ln -s /app /tests",
    "linked logs": "rm -rf /logs; ln -s /app /logs",
    "no logs": "rm -rf /logs; touch /logs",
    "no working directory": "cd /; rm -rf /app; ln -s /proc /app",
}


@pytest.mark.parametrize("sabotage", SABOTAGE.values(), ids=SABOTAGE.keys())
def test_what_the_agents_program_does_to_the_machine_in_one_step_ends_clearly(tmp_path, sabotage):
    # The first step's tests run it, and it sees all that they see.
    files = write(tmp_path / "files" / "seed.txt", "seed").parent
    first = make_step(tmp_path / "1", name="one", test=f"{PASS}; bash program")
    second = make_step(tmp_path / "2", name="two", test=passes_if("[ -e seed.txt ]"), files=files)
    turns = turns_of(("write_file", {"path": "program", "content": f"{sabotage}; {PASS}"}))
    turns += shell("ls -d /tests/* /logs/verifier/*")
    trial = played(make_task(tmp_path / "task", first, second), turns, tmp_path)
    assert trial.record.termination_reason == "completed"
    assert trial.verdict is not None
    judged = [e for e in trial.trajectory.events if e.kind == "step_judged"]
    if len(judged) == 2:
        assert "'/tests/*': No such file" in results(trial)[-1]
        assert "'/logs/verifier/*': No such file" in results(trial)[-1]
    else:
        assert str(trial.verdict.error).startswith("step one: ")
        assert judged[0].data["stop"] is not None


def test_nothing_stands_beside_the_tests_but_the_tests(tmp_path):
    task = one_step(tmp_path, test="ls -A /tests")
    plant = "mkdir -p /tests; touch /tests/conftest.py /tests/.hidden; chmod 555 /tests"
    trial = played(task, shell(plant), tmp_path)
    assert trial.verdict is not None
    assert trial.verdict.log == "test.sh\n"


TRICKS = {
    "pipe": "mkfifo /logs/verifier/reward.json",
    "link": "ln -s HOST/reward.txt /logs/verifier/reward.txt",
    "folder elsewhere": "rm -r /logs/verifier; ln -s HOST /logs/verifier",
    "endless": "ln -s /dev/zero /logs/verifier/reward.txt",
    "huge": "truncate -s 1G /logs/verifier/reward.json",
    "folder": "mkdir /logs/verifier/reward.json",
    "not a number": "echo nan > /logs/verifier/reward.txt",
    "deep": "python3 -c 'print(\"[\" * 60000)' > /logs/verifier/reward.json",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
def test_code_of_the_agent_that_the_tests_run_gives_no_reward(tmp_path, trick):
    write(tmp_path / "host" / "reward.txt", "1")
    task = one_step(tmp_path, test="bash /app/program")
    program = trick.replace("HOST", str(tmp_path / "host"))
    turns = turns_of(("write_file", {"path": "program", "content": program}))
    trial = played(task, turns, tmp_path)
    assert trial.record.termination_reason == "completed"
    assert trial.verdict is not None
    assert (trial.verdict.rewards, trial.record.outcome) == ({}, None)
    assert trial.verdict.error


WAITS = {
    "shell": ("shell", {"command": "sleep 5; echo apple > fruit.txt"}),
    "keystrokes": ("keystrokes", {"keystrokes": "sleep 5; echo apple > f*\n", "duration": 30}),
}


@pytest.mark.parametrize("call", WAITS.values(), ids=WAITS.keys())
def test_what_an_agent_runs_ends_with_the_agents_time(tmp_path, call):
    step = make_step(tmp_path / "task", test=HONEST, agent_timeout_s=0.5)
    task = make_task(tmp_path / "task", step, tools=("shell", "keystrokes"))
    trial = played(task, turns_of(call, call), tmp_path)
    again = played(task, turns_of(call, call), tmp_path, record=False)
    for record in (trial.record, again.record):
        assert record.termination_reason == "duration_exceeded"
        # The verifier ran, and found nothing.
        assert record.outcome == "failed"
    assert len(results(trial)) == 1
    assert again.record.transcript_digest == trial.record.transcript_digest


def test_a_verifier_that_never_ends_is_an_error_and_leaves_nothing(tmp_path):
    marker = f"endless-{uuid.uuid4().hex}"
    step = make_step(
        tmp_path / "task",
        test=f"{PASS}; echo judging; exec -a {marker} sleep 60",
        verifier={"timeout_s": 1},
    )
    trial = played(make_task(tmp_path / "task", step), shell("true"), tmp_path)
    assert trial.verdict is not None
    assert trial.verdict.error == "the verifier did not end within 1 s"
    assert trial.verdict.log == "judging\n"
    assert processes(marker) == []


def test_the_tests_are_not_there_while_the_agent_is(task, tmp_path):
    (said,) = results(played(task, shell("ls -d /tests /solution; ls /logs/verifier"), tmp_path))
    assert "'/tests': No such file" in said
    assert "'/solution': No such file" in said
    assert "test" not in said.replace("/tests", "")


@pytest.mark.parametrize("left", ["ln -s /proc/nope /app", "ln -s /dev/shm/a /app", "touch /app"])
def test_an_agent_that_takes_the_working_directory_away_has_failed(task, tmp_path, left: str):
    trial = played(task, shell(f"cd /; rm -rf /app; {left}", "pwd"), tmp_path)
    assert trial.record.termination_reason == "completed"
    assert trial.record.outcome == "failed"
