"""The suite of skills: its tasks hold on this machine, and cover what real ones use."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.loader.suite import load_suite
from harness.schema.environment import CopyFiles, Environment, FileCommand, Step
from harness.schema.suite import Task
from tests.cli.tiny import Message, in_subprocess, model_server, text_of, trials_of
from tests.sandbox.here import working_sandbox

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "suites" / "skills"
TASKS = {task.name: task for task in load_suite(SUITE).tasks}


@pytest.fixture
def _cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments of packages are kept from one run of the tests to the next."""
    working_sandbox()
    assert request.config.cache is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(request.config.cache.mkdir("environments")))


@pytest.fixture
def _registry(tmp_path: Path) -> None:
    """A package registry that answers; environments are made from it where they are not kept."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1"]
    command += ["--dest", str(tmp_path), "pytest-json-ctrf==0.3.5"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode:
        pytest.skip(f"the package registry cannot be reached: {asked.stderr.splitlines()[-1]}")


# One test for all, so that workers do not build the same environment beside each other.
@pytest.mark.usefixtures("_cache", "_registry")
def test_every_solution_scores_one_and_doing_nothing_scores_zero() -> None:
    done = in_subprocess("task", "check", str(SUITE), "--jobs", "2", "--json", folder=ROOT)
    found = {one["task"]: one for one in json.loads(done.out)}
    assert sorted(found) == sorted(TASKS)
    wrong = [one for one in found.values() if (one["oracle"], one["nop"]) != (1.0, 0.0)]
    assert wrong == []
    assert done.code == 0, done.err


def shown_solution(task: Task, step: Step) -> str:
    """The reference solution as one command of an agent, who has no /solution."""
    assert step.solution is not None
    own = "/tmp/shown"
    lines = [f"mkdir -p {own}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in step.solution.env.items()]
    for file in sorted(step.solution.folder.iterdir()):
        text = file.read_text().replace(f"{step.solution.place}/", f"{own}/")
        lines.append(f"cat > {own}/{file.name} <<'SHOWN'\n{text}SHOWN")
    return "\n".join([*lines, f"bash {own}/solve.sh"])


def knowing_agent(messages: list[Message]) -> str:
    """A model that knows the reference solutions, and calls tools in text."""
    if any(message["role"] == "assistant" for message in messages):
        return "All is done."
    asked = text_of(messages[-1])
    for task in TASKS.values():
        for step in task.steps:
            if step.instruction in asked:
                command = shown_solution(task, step)
                return json.dumps({"name": "shell", "arguments": {"command": command}})
    return "I do not know this task."


# Steps, a verifier's own machine, and packages; the others take much longer than they add.
FEW = ("lighthouse-log", "recipe-scaler", "seed-exchange")


@pytest.mark.slow
@pytest.mark.usefixtures("_cache", "_registry")
@pytest.mark.parametrize("names", [FEW, tuple(TASKS)], ids=["few", "all"])
def test_an_agent_that_knows_the_solutions_passes_live_and_replayed(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    chosen = [word for name in names for word in ("--task", name)]
    with model_server(solve=knowing_agent) as server:
        live = in_subprocess(
            *("run", str(SUITE), "--variants", "none", "--record-mode", "new_episodes", *chosen),
            *("--set", f"model.base_url=http://127.0.0.1:{server.port}/v1", "--jobs", "2"),
            *("--cassettes", "recorded", "--out", "live", "--quiet"),
            folder=tmp_path,
        )
        assert live.code == 0, live.err
    replayed = in_subprocess(
        *("run", str(SUITE), "--variants", "none", "--cassettes", "recorded", *chosen),
        *("--out", "replayed", "--quiet"),
        folder=tmp_path,
    )
    assert replayed.code == 0, replayed.err
    first, again = (trials_of(tmp_path / name) for name in ("live", "replayed"))
    assert {trial.task: trial.outcome for trial in first} == dict.fromkeys(names, "passed")
    assert [(trial.transcript_digest, trial.verdict) for trial in again] == [
        (trial.transcript_digest, trial.verdict) for trial in first
    ]


def drummer(messages: list[Message]) -> str:
    """A model that loads the skill it is told of, and runs its script; else it looks for one."""
    said = sum(message["role"] == "assistant" for message in messages)
    is_told = "drum-code" in text_of(messages[0])
    if said == 0 and is_told:
        return json.dumps({"name": "load_skill", "arguments": {"name": "drum-code"}})
    if said > is_told:
        return "That was all."
    script = "/root/.claude/skills/drum-code/scripts/decode.py"
    command = f"python3 {script} < /data/messages/dawn.tap"
    return json.dumps({"name": "shell", "arguments": {"command": command}})


@pytest.mark.usefixtures("_cache", "_registry")
def test_a_skill_on_demand_is_on_the_machine_with_its_scripts_and_else_it_is_not(
    tmp_path: Path,
) -> None:
    with model_server(solve=drummer) as server:
        run = in_subprocess(
            *("run", str(SUITE), "--task", "drum-code", "--variants", "none,on-demand"),
            *("--set", f"model.base_url=http://127.0.0.1:{server.port}/v1"),
            *("--record-mode", "new_episodes", "--quiet"),
            folder=tmp_path,
        )
    assert run.code == 0, run.err
    told = [messages for messages in server.asked if "drum-code" in text_of(messages[0])]
    untold = [messages for messages in server.asked if messages not in told]
    assert "scripts/decode.py" in text_of(told[-1][-3])
    assert "snow on the high pass uuu" in text_of(told[-1][-1])
    assert "No such file or directory" in text_of(untold[-1][-1])


def machines(task: Task) -> Iterator[Environment]:
    assert task.environment is not None
    yield task.environment
    yield from (s.verifier.environment for s in task.steps if s.verifier.environment is not None)


def test_there_are_at_least_twelve_tasks_and_all_can_run_here() -> None:
    assert len(TASKS) >= 12
    assert {name: m.needs for name, t in TASKS.items() for m in machines(t) if m.needs} == {}


def test_they_work_where_real_ones_do() -> None:
    workdirs = {machine.workdir for task in TASKS.values() for machine in machines(task)}
    assert {"/root", "/app", "/workspace", "/data", "/output", "/srv/gauge"} <= workdirs


def test_every_task_has_skills_of_its_own_on_its_machine() -> None:
    assert all(task.skills for task in TASKS.values())
    for task in TASKS.values():
        assert task.environment is not None
        copied = [step for step in task.environment.build if isinstance(step, CopyFiles)]
        assert any({"skills", "skills/", "."} & set(step.sources) for step in copied), task.name


def test_packages_come_from_each_place_that_real_tasks_name_them_in() -> None:
    def packages(name: str, *, verifier: bool = False) -> tuple[str, ...]:
        task = TASKS[name]
        assert task.environment is not None
        own = task.steps[0].verifier
        return own.equipment.packages if verifier else task.environment.equipment.packages

    pinned = ("pytest==8.4.1", "pytest-json-ctrf==0.3.5")
    assert packages("club-ledger") == ("openpyxl==3.1.5", *pinned)
    assert packages("recipe-scaler") == ("PyYAML==6.0.2",)
    assert packages("bus-radio") == ()
    assert packages("bus-radio", verifier=True) == pinned
    own = TASKS["seed-exchange"].steps[0].verifier.environment
    assert own is not None
    assert own.equipment.packages == pinned


@pytest.mark.parametrize("name", ["museum-labels", "lighthouse-log", "recipe-scaler"])
def test_each_spelling_of_uvx_asks_for_the_same_environment(name: str) -> None:
    (tool,) = TASKS[name].steps[0].verifier.equipment.tools
    assert tool == ("pytest", "pytest-json-ctrf==0.3.5", "pytest==8.4.1")
    assert (tool,) == TASKS["hive-weights"].steps[0].verifier.equipment.tools


def test_a_python_that_uvx_names_belongs_to_the_environment() -> None:
    (tool,) = TASKS["choir-rows"].steps[0].verifier.equipment.tools
    assert tool == ("--python=3.12", "pytest", "pytest-json-ctrf==0.3.5", "pytest==8.4.1")


def test_what_uv_runs_is_in_an_environment_without_the_tool() -> None:
    tools = TASKS["drum-code"].steps[0].verifier.equipment.tools
    assert tools == (("pytest-json-ctrf==0.3.5", "pytest==8.4.1"),)


def test_files_are_moved_and_marked_as_dockerfiles_say() -> None:
    machine = TASKS["trail-signs"].environment
    assert machine is not None
    commands = " ".join(step.command for step in machine.build if isinstance(step, FileCommand))
    assert all(word in commands for word in ("mkdir", "cp", "chmod", "mv", "ln", "touch", "rm"))
    assert any("chown" in line for line in machine.ignored)


def test_what_only_a_container_engine_does_is_listed() -> None:
    machine = TASKS["hive-weights"].environment
    assert machine is not None
    assert any("apt-get" in line for line in machine.ignored)
    assert machine.memory_mb == 2048


def test_one_task_has_steps_with_rewards_that_are_needed_to_go_on() -> None:
    task = TASKS["lighthouse-log"]
    assert [step.name for step in task.steps] == ["read", "identify", "report"]
    assert [dict(step.min_reward) for step in task.steps] == [{"reward": 1}, {"reward": 0.5}, {}]
    assert task.steps[0].agent_timeout_s == 300


def test_one_task_is_judged_on_a_machine_of_its_own() -> None:
    (step,) = TASKS["seed-exchange"].steps
    assert step.verifier.environment is not None
    assert "/app/parcels.json" in [artifact.source for artifact in step.artifacts]


def test_no_canary_reaches_an_agent() -> None:
    for name in ("knitting-chart", "bus-radio"):
        assert "canary" in (SUITE / name / "instruction.md").read_text()
        assert "canary" not in TASKS[name].instruction
