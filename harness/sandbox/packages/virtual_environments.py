"""Virtual environments for tasks: built once for each set of requirements, inside the sandbox.

pip runs where the environment is mounted later, so that its scripts name the right interpreter,
and what a package's own build does reaches nothing of the host. Builds share downloads as long as
they install wheels alone into an environment that holds none: that runs no code of a package. One
that has to run such code gets no share in what others install from.

A version that was built for other Pythons alone is replaced by the one that comes closest, and
that is told: most tasks do not depend on it, and building it here would take long and often fail.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import sysconfig
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.errors import SandboxError
from harness.sandbox.files.removal import remove
from harness.sandbox.limits.keeper import LimitKeeper, Limits
from harness.sandbox.namespaces.process import Keeper
from harness.sandbox.packages.index_settings import IndexSettings
from harness.sandbox.packages.missing import (
    Missing,
    has_wheel_of,
    instead_of,
    plain_name,
    read_missing,
)
from harness.sandbox.packages.pip_words import (
    ON_WHAT_IS_THERE,
    can_be_wheels,
    grouped,
    one_by_one,
)
from harness.values import Mount, ProcessResult

PIP_FOLDER = "/opt/pip"
"""Holds pip, for the environments that are built and to build them."""
STAND_IN_MODULES = "/opt/stand-ins/python"
"""Comes before it: a module that stands in for pip may be there."""

# Counts up when environments are built differently, so that old ones are left alone.
_FORMAT = 3
_DOWNLOADS = "/opt/downloads"
_ERROR_LINES = 8
# A local index that does not have the package; a failure to connect that is not the last.
_SAYS_NOTHING = re.compile(r"WARNING: (Location |Retrying \(Retry\(total=[1-9])")
_UNREACHABLE = ("Retrying (Retry(total=0",)

_CONFLICT = ("ResolutionImpossible", "Double requirement given", "conflicting dependencies")
_MOST_TRIES = 30
_TAKEN = "taken.json"
"""In an environment: what was asked for and is not there, with what was taken; pip's stand-in reads
it, too."""
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")

_PATHS = "pip.pth"
"""What an environment without packages holds: where its pip is."""
_MAKE = """\
set -eu
python=$1 place=$2 paths=$3
"$python" -m venv --without-pip "$place"
packages=$("$place/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\\n' "$paths" > "$packages/pip.pth"
for name in pip pip3; do
    printf '#!/bin/sh\\nexec "%s/bin/python" -m pip "$@"\\n' "$place" > "$place/bin/$name"
    chmod 755 "$place/bin/$name"
done
"""


_COMPILE = """\
exec "$1/bin/python" -m compileall -q -j 2 -x '/tests?/' "$1/lib" > /dev/null 2>&1
"""
_WANTS_SETUPTOOLS = """\
set -- "$1"/lib/python*/site-packages
[ ! -d "$1/pkg_resources" ] || exit 1
grep -rqsE --include='*.py' '^ *(import|from) (pkg_resources|distutils)' "$1"
"""
_SETUPTOOLS = "setuptools<81"
"""The last that have `pkg_resources`."""
# Of all files that there are for a package, the names of wheels whose version begins so.
_LIST_WHEELS = """\
version=$1; shift
"$@" 2>&1 | grep -o -e '[^/]*\\.whl' | grep -F -e "-$version" | sort -u
"""


class NetworkRunner(Hashable, Protocol):
    """A sandbox for single processes, that may use the host's network."""

    def run(
        self,
        command: Sequence[str],
        *,
        mounts: Sequence[Mount],
        timeout_s: float,
        cwd: str,
        env: Mapping[str, str],
        network: bool,
        keeper: Keeper | None,
    ) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started."""
        ...


@dataclass(frozen=True, slots=True)
class Built:
    """An environment."""

    folder: Path
    taken: Mapping[str, str]
    """Requirements that are not met, each with what was taken instead."""


@dataclass(frozen=True, slots=True)
class Packages:
    """The cache of environments, and what builds a missing one."""

    cache: Path
    runner: NetworkRunner
    settings: IndexSettings
    progress: Callable[[str], None]
    timeout_s: float
    limits: Limits
    pip: Path
    """The folder of one that runs with the interpreter."""
    python_mounts: tuple[Mount, ...] = ()
    """What the interpreter needs beside the system."""

    def environment(self, words: Sequence[str], python: str, place: str) -> Built:
        """An environment, built now if it is the first time.

        Args:
            words: What `pip install` is told.
            python: The interpreter, as the sandbox names it.
            place: Where the folder is mounted inside.

        Raises:
            SandboxError: pip failed, or the cache cannot be written.
        """
        key = _digest(words, python, place, self.python_mounts)
        folder = self.cache / "packages" / key
        if folder.is_dir():
            return _built(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_name(f"{folder.name}.lock")):
                if not folder.is_dir():
                    self._build(folder, words, python, place)
        except OSError as error:
            raise SandboxError(
                f"the cache of environments {str(self.cache)!r} cannot be used: {error}; "
                "choose another folder"
            ) from error
        return _built(folder)

    def _build(self, folder: Path, words: Sequence[str], python: str, place: str) -> None:
        partial = folder.with_name(f"{folder.name}.partial")
        self.progress(f"installing {hide(' '.join(words)) or 'an empty environment'}, once")
        remove(partial)
        partial.mkdir()
        keeper = LimitKeeper(self.limits, partial)
        try:
            build = _Build(self, keeper, partial, words, python, place)
            build.fresh()
            if words:
                build.install()
                build.finish()
            (partial / "env").rename(folder)
        finally:
            keeper.close()
            remove(partial)


@dataclass(slots=True)
class _Build:
    """One environment on its way."""

    packages: Packages
    keeper: Keeper
    partial: Path
    words: Sequence[str]
    python: str
    place: str
    taken: dict[str, str] = field(default_factory=dict)
    """Words with those that took their place."""
    from_source: set[str] = field(default_factory=set)
    """Names of packages that have no wheel, and are built."""
    is_untouched: bool = False
    """Whether no code of a package can have run in it, or be run by the next pip."""

    def fresh(self) -> None:
        """Begin with an environment that holds nothing."""
        for name in ("env", "tmp"):
            remove(self.partial / name)
            (self.partial / name).mkdir()
        paths = f"{STAND_IN_MODULES}\n{PIP_FOLDER}"
        made = self._run(["/bin/sh", "-c", _MAKE, "sh", self.python, self.place, paths])
        if made.exit_code != 0:
            raise self._failed(made, "its Python must have the venv module")
        self.is_untouched = True

    def install(self) -> None:
        """Install everything the way that is quick, and if need be the ways that are not."""
        groups = grouped(self.words)
        result = self._install(self.words)
        if result.exit_code != 0 and (_says(result, _CONFLICT) or ON_WHAT_IS_THERE in self.words):
            # What comes from several `pip install` lines may replace what an earlier one put there,
            # or be built with it.
            self.fresh()
            for group in one_by_one(groups):
                result = self._install(group)
                if result.exit_code != 0:
                    break
        if result.exit_code != 0:
            raise self._failed(result)

    def finish(self) -> None:
        """Leave the rest of what makes an environment."""
        self._add_setuptools()
        # Tests are most of many packages, and next to nobody imports them.
        self._run(["/bin/sh", "-c", _COMPILE, "sh", self.place])
        # By renaming: whatever a package's build put there, nothing is written through a link.
        written = self.partial / _TAKEN
        written.write_text(json.dumps(self.taken))
        written.replace(self.partial / "env" / _TAKEN)

    def _add_setuptools(self) -> None:
        """Have what setuptools brought for long where a package imports it.

        Images with a pip mostly hold such a setuptools, and pip leaves it as it is.
        """
        if any(plain_name(word) == "setuptools" for word in self.words):
            return
        wants = self._run(["/bin/sh", "-c", _WANTS_SETUPTOOLS, "sh", self.place])
        if wants.exit_code == 0:
            # An index without it is no failure: nobody has asked for it.
            self._pip([_SETUPTOOLS], wheels=True)

    def _install(self, words: Sequence[str]) -> ProcessResult:
        """Install some of the words, as wheels where there are wheels."""
        if not can_be_wheels(grouped(words)):
            return self._pip(words)
        result = self._pip(words, wheels=True)
        for _ in range(_MOST_TRIES):
            missing = read_missing(result.output)
            if result.exit_code == 0 or missing is None or _says(result, _UNREACHABLE):
                break
            if not self._decide(missing):
                break
            result = self._pip(words, wheels=True)
        return result

    def _decide(self, missing: Missing) -> bool:
        """Find a way to do without the file that is missing; False if there is none."""
        closest = missing.closest()
        standing = {word: self.taken.get(word, word) for word in self.words}
        found = {} if closest is None else instead_of(standing.values(), missing, closest)
        if found and self._is_for_others(missing):
            self.taken.update({word: found[now] for word, now in standing.items() if now in found})
            return True
        is_new = missing.name not in self.from_source
        self.from_source.add(missing.name)
        return is_new

    def _is_for_others(self, missing: Missing) -> bool:
        """Whether there are wheels of this version, though not for the Python here."""
        groups = grouped(self.words)
        options = [word for group in groups if group[0].startswith("-") for word in group]
        pip = [*self._command(), "--dry-run", "--no-deps", "--only-binary=:all:", "-vvv", *options]
        listing = ["/bin/sh", "-c", _LIST_WHEELS, "sh", missing.plain_version, *pip, missing.text]
        settings = self.packages.settings
        result = self._run(listing, settings.mounts, settings.env)
        return has_wheel_of(missing, result.output)

    def _command(self) -> list[str]:
        command = [f"{self.place}/bin/python", "-m", "pip", "install", "--no-compile"]
        return [*command, "--no-input", "--progress-bar=off", "--disable-pip-version-check"]

    def _pip(self, words: Sequence[str], *, wheels: bool = False) -> ProcessResult:
        """Install, with the shared downloads if only wheels are, and nothing was before.

        pip runs in the environment: its Python obeys the .pth files of what is installed there.
        """
        mounts = [*self.packages.settings.mounts]
        shares = wheels and not self.from_source and self.is_untouched
        options = ["--only-binary=:all:"] if wheels else []
        if wheels:
            words = [self.taken.get(word, word) for word in words]
        if wheels and self.from_source:
            options.append(f"--no-binary={','.join(sorted(self.from_source))}")
        if shares:
            downloads = self.packages.cache / "pip"
            downloads.mkdir(parents=True, exist_ok=True)
            mounts.append(Mount(downloads, _DOWNLOADS, writable=True))
            options.append(f"--cache-dir={_DOWNLOADS}")
        else:
            options.append("--no-cache-dir")
        command = [*self._command(), *words, *options]
        result = self._run(command, mounts, self.packages.settings.env)
        self.is_untouched = shares and not self._holds_packages()
        return result

    def _holds_packages(self) -> bool:
        found = (self.partial / "env").glob("lib/python*/site-packages/*")
        return any(path.name != _PATHS for path in found)

    def _run(
        self, command: Sequence[str], mounts: Sequence[Mount] = (), env: Mapping[str, str] = {}
    ) -> ProcessResult:
        fixed = {
            "HOME": "/tmp",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_ROOT_USER_ACTION": "ignore",
            "PYTHONUNBUFFERED": "1",
        }
        return self.packages.runner.run(
            command,
            mounts=[
                Mount(self.partial / "tmp", "/tmp", writable=True),
                *self.packages.python_mounts,
                *mounts,
                Mount(self.packages.pip, f"{PIP_FOLDER}/pip"),
                Mount(self.partial / "env", self.place, writable=True),
            ],
            timeout_s=self.packages.timeout_s,
            cwd="/tmp",
            env={**fixed, **env},
            network=True,
            keeper=self.keeper,
        )

    def _failed(self, result: ProcessResult, advice: str | None = None) -> SandboxError:
        lines = [
            line
            for line in hide(result.output).strip().splitlines()
            if not _SAYS_NOTHING.match(line)
        ]
        if result.timed_out:
            lines.append(f"stopped after {self.packages.timeout_s:g} s")
        said = "\n".join(lines[-_ERROR_LINES:])
        if advice is None and _says(result, _UNREACHABLE):
            advice = "its package index cannot be reached; PIP_INDEX_URL or pip.conf name another"
        elif advice is None:
            advice = "check the requirement; PIP_INDEX_URL or pip.conf name another package index"
        version = Path(self.python).resolve().name
        asked = hide(" ".join(self.words))
        return SandboxError(f"cannot install {asked!r} for {version} ({advice}):\n{said}")


def _built(folder: Path) -> Built:
    try:
        taken = json.loads((folder / _TAKEN).read_text())
    except FileNotFoundError:
        taken = {}
    return Built(folder, taken)


def hide(text: str) -> str:
    """A text without the credentials of URLs in it."""
    return _CREDENTIALS.sub("…", text)


def _digest(words: Sequence[str], python: str, place: str, mounts: Sequence[Mount]) -> str:
    host: tuple[str, ...] = (
        sysconfig.get_platform(),
        *platform.libc_ver(),
        str(Path(python).resolve()),
    )
    host += tuple(str(mount.source) for mount in mounts)
    identity = json.dumps([_FORMAT, list(words), place, host])
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _says(result: ProcessResult, texts: Sequence[str]) -> bool:
    return any(text in result.output for text in texts)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that the end of this process lets go."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
