"""The steps of a task: what the agent is asked, what solves it and what judges it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BadInputError
from harness.loader.dockerfile.build import files_of
from harness.loader.dockerfile.installs import Files
from harness.loader.reading import read_text
from harness.loader.task.environment import (
    EnvironmentSource,
    healthcheck,
    network_notes,
    read_environment,
)
from harness.loader.task.layouts import Layout
from harness.loader.task.scripts import files_at, read_script
from harness.schema.environment import (
    Artifact,
    Collect,
    Environment,
    Equipment,
    Solution,
    Step,
    Verifier,
)
from harness.schema.task_file import (
    AgentSection,
    ArtifactSection,
    CollectSection,
    EnvironmentSection,
    StepSection,
    VerifierSection,
)

_PUBLISHED = "/logs/artifacts"
"""Whatever an agent leaves here is an artifact."""

_MACHINE_FILES = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml")


@dataclass(slots=True)
class _Notes:
    ignored: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    done_by_engines: set[str] = field(default_factory=set)
    """Of what is ignored."""


@dataclass(frozen=True, slots=True)
class Steps:
    """All of them, and what of their settings is told of."""

    steps: tuple[Step, ...]
    ignored: tuple[str, ...]
    engine_ignored: tuple[str, ...]
    """Those that a container engine does not do either."""
    needs: tuple[str, ...]


def read_steps(layout: Layout, environment: Environment) -> Steps:
    """The steps of a task; one without `[[steps]]` is a single one.

    Raises:
        BadInputError: a file is missing or cannot be used.
    """
    reader = _Reader(layout, environment)
    sections = layout.file.steps
    if sections:
        steps = tuple(reader.step(section) for section in sections)
    else:
        steps = (reader.only_step(),)
    notes = reader.notes
    ignored, needs = (tuple(dict.fromkeys(told)) for told in (notes.ignored, notes.needs))
    by_nobody = tuple(line for line in ignored if line not in notes.done_by_engines)
    return Steps(steps, ignored, by_nobody, needs)


def instruction(text: str, path: Path) -> str:
    """What the agent is asked to do, without the lines that mark benchmark data.

    Raises:
        BadInputError: nothing is left.
    """
    lines = text.splitlines()
    while lines and (not lines[0].strip() or _is_canary(lines[0])):
        lines.pop(0)
    stripped = "\n".join(lines).strip()
    if not stripped:
        raise BadInputError(f"{path}: empty; write what the agent is asked to do")
    return stripped


def _is_canary(line: str) -> bool:
    stripped = line.strip()
    is_comment = stripped.startswith("#") or (
        stripped.startswith("<!--") and stripped.endswith("-->")
    )
    return is_comment and "canary" in stripped.lower()


class _Reader:
    def __init__(self, layout: Layout, environment: Environment) -> None:
        self._layout = layout
        self._environment = environment
        self._file = layout.file
        self.notes = _Notes()

    def only_step(self) -> Step:
        """The step of a task that has no others."""
        layout, file = self._layout, self._file
        self._judge_agent(file.agent, "agent")
        self._judge_verifier(file.verifier, "verifier")
        self._judge_folder(layout.folder)
        path = layout.config if layout.body is not None else layout.folder / "instruction.md"
        return Step(
            instruction=self._instruction(path, layout.body),
            agent_timeout_s=file.agent.timeout_sec,
            solution=self._solution([layout.solution]),
            verifier=self._verifier([layout.tests], file.verifier, None, ()),
            artifacts=self._artifacts(file.artifacts),
        )

    def step(self, section: StepSection) -> Step:
        """One of several."""
        file, layout = self._file, self._layout
        folder = layout.folder / "steps" / section.name
        key = f"steps.{section.name}"
        if not folder.is_dir():
            raise BadInputError(
                f"{folder}: no such folder; it holds the step's instruction and tests"
            )
        self._judge_agent(file.agent, "agent")
        self._judge_agent(section.agent, f"{key}.agent")
        self._judge_verifier(file.verifier, "verifier")
        self._judge_verifier(section.verifier, f"{key}.verifier")
        self._judge_folder(folder)
        timeout = section.agent.timeout_sec
        files = folder / "workdir"
        return Step(
            name=section.name,
            instruction=self._instruction(folder / "instruction.md", None),
            files=files if files.is_dir() else None,
            agent_timeout_s=file.agent.timeout_sec if timeout is None else timeout,
            healthcheck=healthcheck(section.healthcheck),
            solution=self._solution([folder / "solution", layout.solution]),
            verifier=self._verifier(
                [layout.tests, folder / "tests"],
                section.verifier,
                folder / "tests",
                file.verifier.collect,
            ),
            artifacts=self._artifacts((*file.artifacts, *section.artifacts)),
            min_reward=section.min_reward or {},
        )

    def _instruction(self, path: Path, body: str | None) -> str:
        purpose = "what the agent is asked to do"
        return instruction(read_text(path, purpose=purpose) if body is None else body, path)

    def _files(self, place: str, folders: Sequence[Path]) -> Files:
        environment = self._environment
        otherwise = files_of(environment.build, environment.context)
        return files_at({place: folders}, otherwise)

    def _equipment(
        self, path: Path, place: str, files: Files, environment: Environment
    ) -> Equipment:
        shown = self._layout.shown(path)
        script = read_script(path, files, shown, place=place, cwd=environment.workdir)
        self.notes.ignored += script.problems
        self.notes.done_by_engines.update(script.problems)
        return script.equipment(environment.equipment)

    def _solution(self, folders: Iterable[Path]) -> Solution | None:
        layout = self._layout
        folder = next((one for one in folders if (one / "solve.sh").is_file()), None)
        if folder is None:
            return None
        place = layout.solution_place
        files = self._files(place, [folder])
        return Solution(
            folder=folder,
            place=place,
            env=self._file.solution.env,
            equipment=self._equipment(folder / "solve.sh", place, files, self._environment),
        )

    def _verifier(
        self,
        folders: Sequence[Path],
        section: VerifierSection,
        step_tests: Path | None,
        collect: Sequence[CollectSection],
    ) -> Verifier:
        """What judges a step.

        Args:
            folders: with tests, a later one laid over an earlier one.
            section: the step's table, or the task's if it has no steps.
            step_tests: the step's own folder of tests.
            collect: what the task's table asks for beside the step's.
        """
        if not self._file.metadata.harness.verifier:
            return Verifier(tests=())
        machine, has_tests = self._own_machine(section, step_tests)
        present = tuple(folder for folder in folders if folder.is_dir())
        scripts = [one / "test.sh" for one in present if (one / "test.sh").is_file()]
        environment = machine or self._environment
        equipment = environment.equipment
        place = self._layout.tests_place
        if scripts:
            files = self._files(place, present)
            equipment = self._equipment(scripts[-1], place, files, environment)
        elif not has_tests and self._file.environment.os == "linux":
            read_text(folders[-1] / "test.sh", purpose="the task's verifier")
        return Verifier(
            tests=() if has_tests else present,
            place=place,
            timeout_s=section.timeout_sec,
            env=self._file.verifier.env | section.env,
            equipment=equipment,
            environment=machine,
            collect=tuple(self._collect((*collect, *section.collect))),
        )

    def _own_machine(
        self, section: VerifierSection, step_tests: Path | None
    ) -> tuple[Environment | None, bool]:
        """The verifier's own machine, and whether that has the tests itself."""
        task = self._file.verifier
        if (_mode(section) or _mode(task) or "shared") == "shared":
            return None, False
        chosen = section.environment or task.environment or self._file.environment
        candidates = [(section.environment, step_tests)] if step_tests is not None else []
        for own, folder in (*candidates, (task.environment, self._layout.tests)):
            image = None if own is None else own.docker_image
            if image or any((folder / name).is_file() for name in _MACHINE_FILES):
                return self._machine(chosen, folder, image), True
        image = self._file.environment.docker_image
        os = chosen.os if "os" in chosen.model_fields_set else self._file.environment.os
        chosen = chosen.model_copy(update={"os": os})
        return self._machine(chosen, self._layout.folder / "environment", image), False

    def _machine(self, section: EnvironmentSection, folder: Path, image: str | None) -> Environment:
        layout = self._layout
        source = EnvironmentSource(
            folder, layout.shown(folder), "verifier.environment", str(layout.config)
        )
        return read_environment(section.model_copy(update={"docker_image": image}), source)

    def _artifacts(self, entries: Iterable[str | ArtifactSection]) -> tuple[Artifact, ...]:
        found = []
        for entry in entries:
            if isinstance(entry, str):
                found.append(Artifact(source=entry))
                continue
            if entry.service not in (None, "main"):
                self.notes.needs.append(f"artifacts: {entry.source} of service {entry.service!r}")
            if entry.destination:
                self.notes.ignored.append(
                    f"artifacts: {entry.source} as {entry.destination!r}: logs keep no artifacts"
                )
            found.append(Artifact(source=entry.source, exclude=entry.exclude))
        if all(artifact.source.rstrip("/") != _PUBLISHED for artifact in found):
            found.insert(0, Artifact(source=_PUBLISHED))
        return tuple(found)

    def _collect(self, sections: Iterable[CollectSection]) -> Iterator[Collect]:
        for section in sections:
            if section.service != "main":
                self.notes.needs.append(f"verifier.collect: service {section.service!r}")
            else:
                yield Collect(command=section.command, timeout_s=section.timeout_sec)

    def _judge_agent(self, section: AgentSection, key: str) -> None:
        self._judge_user(section.user, key)
        self._judge_network(section, key)

    def _judge_verifier(self, section: VerifierSection, key: str) -> None:
        self._judge_user(section.user, key)
        for hook in section.collect:
            self._judge_user(hook.user, f"{key}.collect")
        self._judge_network(section, key)
        if section.environment_mode == "shared" and section.environment is not None:
            raise BadInputError(
                f"{self._layout.config}: {key}.environment_mode = 'shared': contradicts"
                f" {key}.environment; remove one"
            )

    def _judge_network(self, section: AgentSection | VerifierSection, key: str) -> None:
        ignored, needs = network_notes(section.network_mode, section.allowed_hosts, None, key)
        self.notes.ignored += ignored
        self.notes.needs += needs
        if self._environment.engine.network:
            self.notes.done_by_engines.update(ignored)

    def _judge_user(self, user: str | None, key: str) -> None:
        if user not in (None, "root", "0"):
            self.notes.ignored.append(f"{key}.user = {user!r}: all processes run as root")

    def _judge_folder(self, folder: Path) -> None:
        if (folder / "trajectory.json").is_file():
            shown = self._layout.shown(folder / "trajectory.json")
            self.notes.needs.append(f"{shown}: begins in the middle of another conversation")
        for part in (self._layout.tests.name, self._layout.solution.name):
            if (folder / part / ".harborignore").is_file():
                shown = self._layout.shown(folder / part)
                self.notes.ignored.append(f"{shown}/.harborignore: all files are laid out")


def _mode(section: VerifierSection) -> str | None:
    """What a table says about the verifier's machine by itself."""
    if section.environment_mode is not None:
        return section.environment_mode
    return None if section.environment is None else "separate"
