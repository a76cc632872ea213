"""What a Dockerfile makes, without a container engine: as much of it as files and packages are.

`COPY`, `WORKDIR`, `ENV` and `ARG` count, and of `RUN` what installs Python packages or only touches
files. All else is listed with its line.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.errors import BadInputError
from harness.loader.dockerfile.file_commands import takes_copies
from harness.loader.dockerfile.ignore_file import excluded, is_excluded
from harness.loader.dockerfile.images import image_problem, python_version
from harness.loader.dockerfile.installs import Files, merged
from harness.loader.dockerfile.instructions import Instruction, instructions, json_form, words
from harness.loader.dockerfile.run_lines import read_run
from harness.loader.dockerfile.shell import LONGEST, expand, is_too_long, units
from harness.loader.explaining import known
from harness.loader.reading import read_text
from harness.schema.environment import CopyFiles, FileCommand

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ARCHIVE = re.compile(r".*\.(tar|tgz|tar\.(gz|bz2|xz|zst))", re.IGNORECASE)
_LONGEST = 100
_MOST_TEXT = 262_144
"""Characters of a Dockerfile."""
_MOST_VARIABLES = 1_048_576
"""Characters of all values that `ENV` and `ARG` have ever set."""
_INSTRUCTIONS = frozenset(
    {
        *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK"),
        *("LABEL", "MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME"),
        "WORKDIR",
    }
)


@dataclass(slots=True)
class Build:
    """What came of a Dockerfile."""

    base: str
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    steps: list[CopyFiles | FileCommand] = field(default_factory=list)
    packages: tuple[str, ...] = ()
    python: str | None = None
    ignored: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def read_build(path: Path, context: Path, shown: str) -> Build:
    """Read a Dockerfile.

    Args:
        path: of the Dockerfile.
        context: the folder that `COPY` takes files from.
        shown: what lines of it are told as, for instance `environment/Dockerfile`.

    Raises:
        BadInputError: it cannot be read, or is none that could ever be built.
    """
    text = read_text(path, purpose="what the task's machine is made of")
    if len(text) > _MOST_TEXT:
        raise BadInputError(f"{path}: longer than {_MOST_TEXT} characters; copy files instead")
    all_stages = instructions(text)
    for one in all_stages:
        if one.name not in _INSTRUCTIONS:
            guess = known(_INSTRUCTIONS, one.name)
            raise BadInputError(f"{path}:{one.line}: unknown instruction {one.name!r}; {guess}")
    stage, scope, found = _last_stage(all_stages)
    if stage is None:
        raise BadInputError(f"{path}: has no FROM; begin with the image to start from")
    problem = image_problem(stage)
    build = Build(stage, python=python_version(stage), needs=[problem] if problem else [])
    _Stage(build, path, context, shown, scope).read(found)
    return build


def files_of(steps: Iterable[CopyFiles | FileCommand], context: Path) -> Files:
    """The files of a build context by their place on the machine."""
    copies = [step for step in reversed(list(steps)) if isinstance(step, CopyFiles)]

    def file(path: str) -> Path | None:
        return next((one for copy in copies for one in _origins(copy, path, context)), None)

    return file


def _origins(copy: CopyFiles, path: str, context: Path) -> Iterator[Path]:
    place = PurePosixPath(posixpath.normpath(path))
    target = PurePosixPath(copy.target)
    for source in copy.sources:
        for origin in _matches(context, source):
            if origin.is_dir() and place.is_relative_to(target):
                found = origin / place.relative_to(target)
            elif place in (target, target / origin.name):
                found = origin
            else:
                continue
            if found.is_file() and found.resolve().is_relative_to(context.resolve()):
                yield found


def _matches(context: Path, source: str) -> list[Path]:
    """What a source names, within the context alone."""
    parts = [part for part in source.split("/") if part not in ("", ".")]
    if ".." in parts:
        return []
    if not parts:
        return [context]
    plain = context.joinpath(*parts)
    try:
        found = [plain] if plain.exists() else sorted(context.glob("/".join(parts)))
    except (ValueError, OSError):
        return []
    return [one for one in found if one.resolve().is_relative_to(context.resolve())]


def _last_stage(
    found: Iterable[Instruction],
) -> tuple[str | None, dict[str, str], list[Instruction]]:
    """The image that the last stage begins from, arguments of all stages, and its instructions."""
    scope: dict[str, str] = {}
    stages: dict[str, tuple[str, list[Instruction]]] = {}
    base: str | None = None
    own: list[Instruction] = []
    for instruction in found:
        if instruction.name == "FROM":
            _, rest = instruction.flags()
            parts = [expand(word, scope, unset="") or "" for word in words(rest)]
            image = parts[0] if parts else ""
            base, earlier = stages.get(image.lower(), (image, []))
            own = list(earlier)
            if len(parts) == 3 and parts[1].lower() == "as":
                stages[parts[2].lower()] = (base, own)
        elif base is not None:
            own.append(instruction)
        elif instruction.name == "ARG":
            scope |= _arguments(instruction, scope, {})
    return base, scope, own


def _arguments(
    instruction: Instruction, scope: dict[str, str], outer: dict[str, str]
) -> dict[str, str]:
    found = {}
    for word in words(instruction.value):
        name, equals, value = word.partition("=")
        if equals:
            found[name] = expand(value, scope, unset="") or ""
        elif name in outer:
            found[name] = outer[name]
    return found


class _Stage:
    """Reads the instructions of a stage into a build."""

    def __init__(
        self, build: Build, path: Path, context: Path, shown: str, outer: dict[str, str]
    ) -> None:
        self._build = build
        self._path = path
        self._context = context
        self._shown = shown
        self._outer = outer
        self._excluded = excluded(context)
        self._args: dict[str, str] = {}
        self._line = 0
        self._size = 0
        """Of all values so far."""
        self._is_complete = True

    def read(self, found: Iterable[Instruction]) -> None:
        for instruction in found:
            self._line = instruction.line
            if instruction.name == "WORKDIR":
                self._workdir(instruction)
            elif instruction.name == "ENV":
                self._env(instruction)
            elif instruction.name == "ARG":
                given = _arguments(instruction, self._variables(), self._outer)
                self._measure(given.values())
                self._args |= given
            elif instruction.name in ("COPY", "ADD"):
                self._copy(instruction)
            elif instruction.name == "RUN":
                self._run(instruction)
            elif (instruction.name, instruction.value) not in (("USER", "root"), ("USER", "0")):
                self._ignore(instruction.line, f"{instruction.name} {instruction.value}")

    def _variables(self) -> dict[str, str]:
        return {"PATH": _PATH} | self._args | self._build.env

    def _text(self, word: str) -> str:
        variables = self._variables()
        if is_too_long(word, variables):
            raise self._error(f"stands for more than {LONGEST} characters; shorten it")
        return expand(word, variables, unset="") or ""

    def _measure(self, values: Iterable[str]) -> None:
        self._size += sum(map(len, values))
        if self._size > _MOST_VARIABLES:
            raise self._error(f"all variables have over {_MOST_VARIABLES} characters; shorten them")

    def _error(self, text: str) -> BadInputError:
        return BadInputError(f"{self._path}:{self._line}: {text}")

    def _ignore(self, line: int, text: str) -> None:
        short = " ".join(text.split())
        short = short if len(short) <= _LONGEST else f"{short[:_LONGEST]}…"
        self._build.ignored.append(f"{self._shown}:{line}: {short}")

    def _place(self, path: str) -> str:
        """An absolute path on the machine; a slash at its end stays."""
        joined = posixpath.join(self._build.workdir, path)
        plain = posixpath.normpath(joined).replace("//", "/")
        is_folder = path in (".", "./", "") or path.endswith(("/", "/."))
        return f"{plain.rstrip('/')}/" if is_folder else plain

    def _workdir(self, instruction: Instruction) -> None:
        place = self._place(self._text(instruction.value)).rstrip("/") or "/"
        self._build.workdir = place

    def _env(self, instruction: Instruction) -> None:
        parts = words(instruction.value)
        if parts and "=" not in parts[0]:
            name, _, value = instruction.value.partition(" ")
            given = {name: self._text(value.strip())}
        else:
            # All of a line see what was there before it.
            pairs = (part.partition("=") for part in parts)
            given = {name: self._text(value) for name, _, value in pairs}
        if not all(given):
            raise self._error("ENV: a variable has no name; write ENV NAME=value")
        self._measure(given.values())
        self._build.env |= given

    def _copy(self, instruction: Instruction) -> None:
        flags, rest = instruction.flags()
        arguments = json_form(rest) or words(rest)
        here = instruction.files_in_place()
        if len(arguments) < 2 or "from" in flags:
            self._ignore_copy(instruction)
            return
        *sources, target = (one if one in here else self._text(one) for one in arguments)
        remote = [one for one in sources if "://" in one or one.startswith("git@")]
        place = self._place(target)
        if remote or "exclude" in flags:
            self._ignore_copy(instruction)
            return
        if not takes_copies(place):
            self._ignore_copy(instruction, f" ({place} belongs to the system)")
            return
        for source in sources:
            if source in here:
                self._write(here[source].content, here[source].name, place)
        found = tuple(_plain(source) for source in sources if source not in here)
        missing = [source for source in found if not _matches(self._context, source)]
        for source in missing:
            self._is_missing(instruction, source)
        if missing or not found:
            return
        archives = tuple(one for one in found if self._is_archive(instruction, one))
        if (len(found) > 1 or archives) and not place.endswith("/"):
            place += "/"
        self._build.steps.append(
            CopyFiles(sources=found, target=place, exclude=self._left_out(found))
        )
        self._unpack(archives, place)
        if "chmod" in flags:
            copied = " ".join(shlex.quote(self._copied(one, place)) for one in found)
            self._command(f"chmod -R {shlex.quote(flags['chmod'])} {copied}", "/")

    def _is_missing(self, instruction: Instruction, source: str) -> None:
        problem = f"{source!r} is not in {self._context.name}/"
        is_pattern = re.search(r"[*?\[]", source) is not None
        if not is_pattern and not is_excluded(self._context, source):
            raise BadInputError(
                f"{self._path}:{instruction.line}: {instruction.name}: {problem}; add it, or take"
                " it out of the line"
            )
        # Builders do not agree on whether a pattern may stand for nothing, and who excludes a file
        # may have it elsewhere.
        self._build.needs.append(f"{self._shown}:{instruction.line}: {problem}")

    def _is_archive(self, instruction: Instruction, source: str) -> bool:
        is_file = (self._context / source).is_file()
        return instruction.name == "ADD" and is_file and _ARCHIVE.fullmatch(source) is not None

    def _ignore_copy(self, instruction: Instruction, reason: str = "") -> None:
        self._ignore(instruction.line, f"{instruction.name} {instruction.value}{reason}")
        self._is_complete = False

    def _left_out(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        """What of the excluded may lie in these sources."""
        if any(one == "." or re.search(r"[*?\[]", one) for one in sources):
            return self._excluded
        return tuple(
            path
            for path in self._excluded
            if any(path == one or path.startswith(f"{one}/") for one in sources)
        )

    def _copied(self, source: str, place: str) -> str:
        """Where a source is then; a folder's content is where the folder was to go."""
        is_file = place.endswith("/") and (self._context / source).is_file()
        return place + posixpath.basename(source) if is_file else place

    def _write(self, content: str, name: str, place: str) -> None:
        path = f"{place}{name}" if place.endswith("/") else place
        folder = shlex.quote(posixpath.dirname(path))
        text = shlex.quote(content)
        self._command(f"mkdir -p {folder}\nprintf %s {text} > {shlex.quote(path)}", "/")

    def _unpack(self, sources: tuple[str, ...], place: str) -> None:
        for archive in (shlex.quote(place + posixpath.basename(one)) for one in sources):
            self._command(f"tar -xf {archive} -C {shlex.quote(place)} && rm {archive}", "/")

    def _command(self, text: str, cwd: str) -> None:
        self._build.steps.append(FileCommand(command=text, cwd=cwd))

    def _run(self, instruction: Instruction) -> None:
        _, rest = instruction.flags()
        given = json_form(rest)
        if given is None:
            found = units(instruction.script(), instruction.line_at)
        else:
            found = units(shlex.join(given), lambda _: instruction.line)
        line = read_run(
            found,
            cwd=self._build.workdir,
            files=files_of(self._build.steps, self._context),
            variables={"HOME": "/root", "PATH": _PATH} | self._build.env,
            arguments=self._args,
            is_complete=self._is_complete,
        )
        self._is_complete = line.is_complete
        place = f"{self._shown}:{instruction.line}"
        self._build.steps += [one.model_copy(update={"place": place}) for one in line.commands]
        self._build.packages = merged(self._build.packages, line.packages)
        self._build.python = line.python or self._build.python
        for number, text in line.ignored:
            self._ignore(number, text)
        for number, name in line.missing:
            if self._is_complete and not self._may_be_there(posixpath.basename(name)):
                self._build.needs.append(
                    f"{self._shown}:{number}: {name!r} is neither in {self._context.name}/ nor made"
                )

    def _may_be_there(self, name: str) -> bool:
        """Whether a file is in the context, or a command may make it."""
        commands = [one.command for one in self._build.steps if isinstance(one, FileCommand)]
        return (self._context / name).exists() or any(name in text for text in commands)


def _plain(source: str) -> str:
    """A source without what only leads to the context itself."""
    return posixpath.normpath(source.lstrip("/")) if source.strip("/") else "."
