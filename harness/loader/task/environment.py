"""`[environment]` and what lies in its folder, as the machine that a trial gets."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BadInputError, ConfigurationError
from harness.loader.dockerfile.build import Build, read_build
from harness.loader.dockerfile.file_commands import in_system
from harness.loader.dockerfile.images import image_problem, python_version
from harness.loader.task.compose import OTHERS, read_compose
from harness.schema.environment import (
    CopyFiles,
    EngineSettings,
    Environment,
    Equipment,
    Healthcheck,
    folder_environment,
)
from harness.schema.task_file import EnvironmentSection, HealthcheckSection, megabytes

_COMPOSE = ("docker-compose.yaml", "docker-compose.yml")


@dataclass(frozen=True, slots=True)
class EnvironmentSource:
    """Where the parts of a machine are written."""

    folder: Path
    """The build context."""
    shown: str
    """The folder as its task's author names it, for instance `environment`."""
    key: str
    """The table of the settings, for instance `verifier.environment`."""
    file: str
    """What holds the table, for errors."""


@dataclass(slots=True)
class _Notes:
    ignored: list[str] = field(default_factory=list)
    engine_ignored: list[str] = field(default_factory=list)
    """Those that a container engine does not do here either."""
    needs: list[str] = field(default_factory=list)
    engine_needs: list[str] = field(default_factory=list)
    """Those that a container engine does not give here either."""


def read_environment(section: EnvironmentSection, source: EnvironmentSource) -> Environment:
    """The machine of a table and a folder.

    Raises:
        BadInputError: nothing says what the machine is, or two keys contradict each other.
    """
    notes = _Notes()
    section = _with_compose(section, source, notes)
    environment = _made(section, source, notes)
    workdir = posixpath.normpath(posixpath.join(environment.workdir, section.workdir or ""))
    if in_system(workdir):
        notes.needs.append(f"working directory {workdir}: the system is read-only here")
    _judge(section, source, notes)
    return environment.model_copy(
        update={
            "docker_image": section.docker_image,
            "workdir": workdir.replace("//", "/"),
            "env": environment.env | section.env,
            "healthcheck": healthcheck(section.healthcheck),
            "memory_mb": _megabytes(section, "memory", source),
            "storage_mb": _megabytes(section, "storage", source),
            "build_timeout_s": section.build_timeout_sec,
            "skills_dir": section.skills_dir,
            "ignored": (*environment.ignored, *notes.ignored),
            "needs": tuple(dict.fromkeys((*environment.needs, *notes.needs))),
            "engine": EngineSettings(
                variables=tuple(section.env),
                network=_has_network(section),
                cpus=section.cpus,
                ignored=tuple(notes.engine_ignored),
                needs=tuple(notes.engine_needs),
            ),
        }
    )


def _with_compose(
    section: EnvironmentSection, source: EnvironmentSource, notes: _Notes
) -> EnvironmentSection:
    """The settings with the variables that a file for Compose has for the machine."""
    name = next((name for name in _COMPOSE if (source.folder / name).is_file()), None)
    if name is None:
        return section
    found = read_compose(source.folder / name, section.docker_image)
    has_machine = (source.folder / "Dockerfile").is_file() or section.docker_image is not None
    if found.need or not has_machine:
        notes.needs.append(f"{source.shown}/{name}: {found.need or OTHERS}")
        notes.engine_needs.append(notes.needs[-1])
        return section
    notes.engine_ignored += [f"{source.shown}/{name}: {text}" for text in found.ignored]
    notes.ignored += notes.engine_ignored
    return section.model_copy(update={"env": found.env | section.env})


def healthcheck(section: HealthcheckSection | None) -> Healthcheck | None:
    """What is run until it succeeds."""
    if section is None:
        return None
    return Healthcheck(**section.model_dump(include=set(Healthcheck.model_fields)))


def network_notes(
    mode: str | None, hosts: tuple[str, ...] | None, allow: bool | None, key: str
) -> tuple[list[str], list[str]]:
    """What of a wish for a network is ignored, and what makes a task impossible here."""
    needs = [f"{key}.allowed_hosts: {', '.join(hosts)}"] if hosts else []
    ignored = []
    if not hosts and mode == "public":
        ignored.append(f"{key}.network_mode = 'public': there is no network")
    if mode is None and allow:
        ignored.append(f"{key}.allow_internet = true: there is no network")
    return ignored, needs


def _made(section: EnvironmentSection, source: EnvironmentSource, notes: _Notes) -> Environment:
    """The machine as the folder or the image makes it."""
    folder = source.folder
    dockerfile = folder / "Dockerfile"
    if dockerfile.is_file():
        if section.docker_image is not None:
            notes.ignored.append(f"{source.key}.docker_image: the Dockerfile is read instead")
        return _environment(folder, read_build(dockerfile, folder, f"{source.shown}/Dockerfile"))
    if section.docker_image is not None:
        return _of_image(section.docker_image, source, section.workdir, notes)
    if notes.engine_needs:
        return Environment(context=folder, workdir="/")
    if (folder / "workspace").is_dir():
        return folder_environment(folder / "workspace")
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder; it holds the machine the agent starts with")
    raise BadInputError(
        f"{dockerfile}: no such file; add it, or a folder workspace/ with the files the agent"
        f" starts with, or name an image with {source.key}.docker_image"
    )


def _environment(folder: Path, build: Build) -> Environment:
    return Environment(
        context=folder,
        base=build.base,
        workdir=build.workdir,
        env=build.env,
        build=tuple(build.steps),
        equipment=Equipment(packages=build.packages, python=build.python),
        ignored=tuple(build.ignored),
        needs=tuple(build.needs),
    )


def _of_image(
    image: str, source: EnvironmentSource, workdir: str | None, notes: _Notes
) -> Environment:
    """A ready image: files of the folder, if there are any, go into the working directory."""
    problem = image_problem(image)
    if problem is not None:
        notes.needs.append(problem)
    has_files = source.folder.is_dir() and any(source.folder.iterdir())
    place = posixpath.normpath(posixpath.join("/", workdir or "")).rstrip("/") + "/"
    return Environment(
        context=source.folder,
        base=image,
        workdir="/",
        build=(CopyFiles(sources=(".",), target=place),) if has_files else (),
        equipment=Equipment(python=python_version(image)),
    )


def _judge(section: EnvironmentSection, source: EnvironmentSource, notes: _Notes) -> None:
    ignored, needs = network_notes(
        section.network_mode, section.allowed_hosts, section.allow_internet, source.key
    )
    notes.ignored += ignored
    needs += _hardware(section, source.key)
    if section.mcp_servers:
        names = ", ".join(server.name for server in section.mcp_servers)
        needs.append(f"{source.key}.mcp_servers: {names}")
    notes.needs += needs
    notes.engine_needs += needs
    for key in ("cpus", "gpu_types"):
        if getattr(section, key) is not None:
            notes.ignored.append(f"{source.key}.{key}: processes take what the host has")


def _has_network(section: EnvironmentSection) -> bool:
    """Whether an engine gives a network: as in Harbor, unless the task says otherwise."""
    if section.network_mode is not None:
        return section.network_mode == "public"
    return section.allow_internet is not False


def _hardware(section: EnvironmentSection, key: str) -> Iterator[str]:
    if section.gpus:
        yield f"{key}.gpus = {section.gpus}: a GPU"
    if section.tpu is not None:
        yield f"{key}.tpu = {section.tpu.type!r}: a TPU"
    if section.os != "linux":
        yield f"{key}.os = {section.os!r}: another system than Linux"


def _megabytes(section: EnvironmentSection, name: str, source: EnvironmentSource) -> int | None:
    older: str | None = getattr(section, name)
    newer: int | None = getattr(section, f"{name}_mb")
    if older is None:
        return newer
    size = megabytes(older)
    if newer not in (None, size):
        raise ConfigurationError(
            f"{source.file}: {source.key}.{name} = {older!r}: contradicts {name}_mb = {newer}; keep"
            " one"
        )
    return size
