"""A task's machine while its steps go over it: what comes before each, and what comes after."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.containers import Container
from harness.errors import InfrastructureError
from harness.loader.task.scripts import on_top
from harness.loader.task.templates import resolved
from harness.runner.artifacts import carry
from harness.runner.hosting import Hosting
from harness.runner.rewards import LOG_CHARACTERS, read_rewards
from harness.schema.environment import Equipment, Healthcheck, Solution, Step
from harness.schema.record import Json
from harness.schema.results import Verdict
from harness.schema.suite import Task
from harness.tools.machine import Machine
from harness.values import ProcessResult

SOLUTION_TIMEOUT_S = 3600.0
"""Of a reference solution whose task gives the agent no limit."""

_TEST_OUTPUT = "/logs/verifier/test-stdout.txt"
_SOLUTION_OUTPUT = "/logs/agent/oracle.txt"
_SHOWN_OUTPUT = 300
_REMOVAL_TIMEOUT_S = 10.0
_NOT_STARTED = 126
"""Exit code of a command that cannot be started, as where its folder cannot be entered."""


NOT_SET_UP = "the verifier cannot be set up"
"""How the error of such a verdict begins."""


@dataclass(frozen=True, slots=True)
class Left:
    """What an agent gave, besides what is on its machine."""

    answer: str = ""
    output: Json = None
    output_seen: bool = False


@dataclass(frozen=True, slots=True)
class Solved:
    """What came of a reference solution."""

    log: str
    """The end of what it wrote."""
    overrun: str | None = None
    """That it was ended by its time limit, in words."""


class Stage:
    """One pass over a task's steps: an agent's, the reference solution's, or nobody's."""

    def __init__(self, task: Task, machine: Machine, hosting: Hosting) -> None:
        """Prepare nothing yet."""
        assert task.environment is not None
        self._environment = task.environment
        self._machine = machine
        self._hosting = hosting
        self._begun = False
        self._verified: str | None = None
        """Where the machine still has a verifier's tests; it has its equipment, too."""
        self._installed: Equipment | None = None
        """What reference solutions installed: it stays on the machine."""

    def begin(self, step: Step) -> None:
        """Make the machine what the step's agent is to find.

        Raises:
            InfrastructureError: setup.sh or a healthcheck fails, or the sandbox does.
        """
        try:
            self._begin(step, self._machine.container)
        except OSError as error:
            where = f"step {step.name}" if step.name else "the task"
            raise InfrastructureError(
                f"{where} cannot be begun on the machine as it was left: {error}"
            ) from error

    def _begin(self, step: Step, container: Container) -> None:
        if not self._begun and self._environment.healthcheck:
            self._check_health(container, self._environment.healthcheck)
        self._begun = True
        if self._verified is not None:
            container.equip(self._environment.equipment)
            _make_room(container)
            container.clear(self._verified)
            container.clear("/logs/agent")
            # Not even an empty folder tells of the tests.
            container.run(["rmdir", self._verified], timeout_s=_REMOVAL_TIMEOUT_S)
            self._verified = None
        if step.files is not None:
            container.upload(step.files, container.workdir, merge=True)
            if (step.files / "setup.sh").is_file():
                self._set_up(container, step)
        if step.healthcheck:
            self._check_health(container, step.healthcheck)

    def _check_health(self, container: Container, check: Healthcheck) -> None:
        check_health(container, check, self._environment.build_timeout_s)

    def _set_up(self, container: Container, step: Step) -> None:
        script = f"{container.workdir.rstrip('/')}/setup.sh"
        limit = self._environment.build_timeout_s
        result = container.run(["bash", script], timeout_s=limit)
        if result.exit_code != 0:
            how = _how_it_ended(result, limit)
            raise InfrastructureError(
                f"step {step.name}: setup.sh {how}: {result.output.strip()[-_SHOWN_OUTPUT:]}"
            )

    def solve(self, step: Step, solution: Solution) -> Solved:
        """Run a step's reference solution.

        Its exit code does not count: what it leaves does.
        """
        container = self._machine.container
        self._installed = self._with_installed(solution.equipment)
        container.equip(self._installed)
        container.upload(solution.folder, solution.place)
        own = step.agent_timeout_s
        limit = (own or SOLUTION_TIMEOUT_S) * self._hosting.agent_timeout
        ran = _run_script(
            container,
            f"{solution.place}/solve.sh",
            _SOLUTION_OUTPUT,
            timeout_s=limit,
            env={
                "DEBIAN_FRONTEND": "noninteractive",
                **resolved(solution.env, self._hosting.variables),
            },
        )
        if not ran.timed_out:
            return Solved(ran.log)
        of = f" of step {step.name}" if step.name else ""
        key = "agent.timeout_sec" if own else "there is no agent.timeout_sec"
        return Solved(
            ran.log,
            f"the reference solution{of} did not end within {limit:g} s ({key});"
            " --agent-timeout-multiplier X gives it more",
        )

    def verify(self, step: Step, left: Left | None) -> Verdict | None:
        """Run a step's verifier on what its agent left; None where there is none.

        It sees its own tests, and /logs with the agent's answer.txt and, if there was an output,
        output.json. Its exit code is ignored; its reward file counts.

        Args:
            step: whose verifier it is.
            left: what an agent gave; None where there was no agent.

        Raises:
            InfrastructureError: the sandbox failed, which says nothing about the agent.
        """
        verifier = step.verifier
        if not verifier.tests and verifier.environment is None:
            return None
        container = self._machine.container
        self._begun = True
        # Closes terminals as well: from here on nothing of the agent runs.
        container.equip(self._environment.equipment)
        for command in verifier.collect:
            container.run(["bash", "-c", command.command], timeout_s=command.timeout_s)
        if verifier.environment is None:
            self._verified = verifier.place
            return self._judged(container, step, left)
        own = self._hosting.open(verifier.environment)
        try:
            missing = carry(step.artifacts, container, own)
            verdict = self._judged(own, step, left)
        finally:
            own.close()
        if verdict.rewards or not missing:
            return verdict
        gone = "".join(f"[no artifact {line}]\n" for line in missing)
        return verdict.model_copy(update={"log": f"{gone}{verdict.log}"[-LOG_CHARACTERS:]})

    def _with_installed(self, equipment: Equipment) -> Equipment:
        if self._installed is None:
            return equipment
        return on_top(self._environment.equipment, self._installed, equipment)

    def _judged(self, container: Container, step: Step, left: Left | None) -> Verdict:
        verifier = step.verifier
        is_own = verifier.environment is not None
        container.equip(verifier.equipment if is_own else self._with_installed(verifier.equipment))
        try:
            # An agent may have put anything here: rewards, links, tests of its own.
            _make_room(container)
            for number, folder in enumerate(verifier.tests):
                container.upload(folder, verifier.place, merge=number > 0)
            if left is not None:
                _hand_over(container, left)
        except OSError as error:
            return Verdict(error=f"{NOT_SET_UP} in what was left: {error}")
        limit = verifier.timeout_s * self._hosting.verifier_timeout
        ran = _run_script(
            container,
            f"{verifier.place}/test.sh",
            _TEST_OUTPUT,
            timeout_s=limit,
            env=resolved(verifier.env, self._hosting.variables),
        )
        if ran.timed_out:
            return Verdict(error=f"the verifier did not end within {limit:g} s", log=ran.log)
        return read_rewards(container, ran.log, ran.exit_code)


def check_health(container: Container, check: Healthcheck, limit_s: float) -> None:
    """Run a healthcheck until it succeeds.

    While the start period lasts, failures do not count.

    Args:
        container: Where it is run.
        check: How often, and how it is tried.
        limit_s: Seconds that all tries may take together.

    Raises:
        InfrastructureError: it failed as often as it may, or for too long.
    """
    began, failures = time.monotonic(), 0
    while True:
        passed = time.monotonic() - began
        if passed >= limit_s:
            raise InfrastructureError(
                f"the healthcheck {check.command!r} did not succeed within {limit_s:g} s"
                " (environment.build_timeout_sec)"
            )
        is_starting = passed < check.start_period_sec
        timeout = min(check.timeout_sec, limit_s - passed)
        result = container.run(["bash", "-c", check.command], timeout_s=timeout)
        if result.exit_code == 0:
            return
        failures += not is_starting
        if failures >= check.retries:
            how = _how_it_ended(result, check.timeout_sec)
            output = result.output.strip()[-_SHOWN_OUTPUT:]
            raise InfrastructureError(
                f"the healthcheck {check.command!r} failed {failures} times in a row; it {how}: "
                f"{output}"
            )
        pause = check.start_interval_sec if is_starting else check.interval_sec
        time.sleep(max(0.0, min(pause, began + limit_s - time.monotonic())))


@dataclass(frozen=True, slots=True)
class _Ran:
    """What came of a script."""

    log: str
    """The end of its output."""
    exit_code: int | None = None
    """None where it was killed, or the machine says nothing of it."""
    timed_out: bool = False


def _run_script(
    container: Container, script: str, output: str, *, timeout_s: float, env: Mapping[str, str]
) -> _Ran:
    """Run a script with its output in a file, as Harbor does."""
    name = shlex.quote(script)
    # The shell's own exit code would be taken for that of one that did not start.
    shown = f"tail -c {LOG_CHARACTERS} {output}; printf '\\n%s' $code"
    line = f"chmod +x {name}; ({name}) > {output} 2>&1; code=$?; {shown}"
    result = container.run(["bash", "-c", line], timeout_s=timeout_s, env=env)
    if result.exit_code == _NOT_STARTED:
        # An agent has taken its working directory away, and is to be graded nevertheless.
        result = container.run(["bash", "-c", line], timeout_s=timeout_s, env=env, cwd="/")
    if not result.timed_out:
        log, _, code = result.output.rpartition("\n")
        if not code.isdecimal():
            return _Ran(result.output[-LOG_CHARACTERS:])
        return _Ran(log[-LOG_CHARACTERS:], exit_code=int(code))
    tail: Sequence[str] = ("tail", "-c", str(LOG_CHARACTERS), output)
    return _Ran(container.run(tail, timeout_s=10).output[-LOG_CHARACTERS:], timed_out=True)


def _hand_over(container: Container, left: Left) -> None:
    container.write("/logs/agent/answer.txt", left.answer.encode(errors="replace"))
    if left.output_seen:
        written = json.dumps(left.output, ensure_ascii=False)
        container.write("/logs/agent/output.json", written.encode(errors="replace"))


def _make_room(container: Container) -> None:
    """Have folders for the verifier's logs and the agent's, whatever stands in their place."""
    try:
        container.clear("/logs/verifier")
        container.names("/logs/agent")
    except OSError:
        for folder in ("/logs", "/logs/agent", "/logs/verifier", "/logs/artifacts"):
            container.clear(folder)


def _how_it_ended(result: ProcessResult, limit: float) -> str:
    if result.timed_out:
        return f"did not end within {limit:g} s"
    return f"exited with {result.exit_code}"
