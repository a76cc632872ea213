"""Virtual environments for tasks: built once for each set of requirements, inside the sandbox.

pip runs where the environment is mounted later, so that its scripts name the right interpreter,
and what a package's own build does reaches nothing of the host. Builds share downloads as long as
they install wheels alone: that runs no code of a package. One that has to run such code gets no
share in what others install from.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import SandboxError
from harness.sandbox.index_settings import IndexSettings
from harness.sandbox.limits import LimitKeeper, Limits
from harness.sandbox.process import Keeper
from harness.sandbox.removal import remove
from harness.values import Mount, ProcessResult

PIP_FOLDER = "/opt/pip"
"""Holds the harness's own pip, for the environments that are built and to build them."""
STAND_IN_MODULES = "/opt/stand-ins/python"
"""Comes before it: a module that stands in for pip may be there."""

# Counts up when environments are built differently, so that old ones are left alone.
_FORMAT = 1
_DOWNLOADS = "/opt/downloads"
_ERROR_LINES = 8
# A local index that does not have the package; a failure to connect that is not the last.
_SAYS_NOTHING = re.compile(r"WARNING: (Location |Retrying \(Retry\(total=[1-9])")
_UNREACHABLE = ("Retrying (Retry(total=0",)

# A name with extras and versions: unlike a path or a URL, it is a wheel if only wheels are allowed.
_NAMED = re.compile(r"[A-Za-z0-9][^/@]*")
_WITH_VALUE = ("--extra-index-url", "--find-links", "--index-url", "--trusted-host")
_WITHOUT_VALUE = ("--no-deps", "--pre", "--prefer-binary", "--upgrade")
_ON_WHAT_IS_THERE = "--no-build-isolation"
_WITH_VALUE_AND_BUILDS = ("--config-settings", "--constraint", "--no-binary", "--only-binary")
_MAYBE_NO_WHEEL = ("No matching distribution found", "ResolutionImpossible")
_CONFLICT = ("ResolutionImpossible", "Double requirement given", "conflicting dependencies")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")

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


class NetworkRunner(Protocol):
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
class Packages:
    """The cache of environments, and what builds a missing one."""

    cache: Path
    runner: NetworkRunner
    settings: IndexSettings
    progress: Callable[[str], None]
    timeout_s: float
    limits: Limits

    def environment(self, words: Sequence[str], python: str, place: str) -> Path:
        """The folder of an environment, built now if it is the first time.

        Args:
            words: What `pip install` is told.
            python: The interpreter, as the sandbox names it.
            place: Where the folder is mounted inside.

        Raises:
            SandboxError: pip failed, or the cache cannot be written.
        """
        folder = self.cache / "packages" / _digest(words, python, place)
        if folder.is_dir():
            return folder
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
        return folder

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
            (partial / "env").rename(folder)
        finally:
            keeper.close()
            remove(partial)


@dataclass(frozen=True, slots=True)
class _Build:
    """One environment on its way."""

    packages: Packages
    keeper: Keeper
    partial: Path
    words: Sequence[str]
    python: str
    place: str

    def fresh(self) -> None:
        """Begin with an environment that holds nothing."""
        for name in ("env", "tmp"):
            remove(self.partial / name)
            (self.partial / name).mkdir()
        paths = f"{STAND_IN_MODULES}\n{PIP_FOLDER}"
        made = self._run(["/bin/sh", "-c", _MAKE, "sh", self.python, self.place, paths])
        if made.exit_code != 0:
            raise self._failed(made, "its Python must have the venv module")

    def install(self) -> None:
        """Install everything the way that is quick, and if need be the ways that are not."""
        groups = _grouped(self.words)
        if _can_be_wheels(groups):
            result = self._pip(self.words, wheels=True)
            if result.exit_code == 0:
                return
            if _says(result, _UNREACHABLE) or not _says(result, _MAYBE_NO_WHEEL):
                raise self._failed(result)
            self.fresh()
        result = self._pip(self.words)
        if result.exit_code != 0 and (_says(result, _CONFLICT) or _ON_WHAT_IS_THERE in self.words):
            # What comes from several `pip install` lines may replace what an earlier one put there,
            # or be built with it.
            self.fresh()
            for group in _one_by_one(groups):
                result = self._pip(group)
                if result.exit_code != 0:
                    break
        if result.exit_code != 0:
            raise self._failed(result)

    def _pip(self, words: Sequence[str], *, wheels: bool = False) -> ProcessResult:
        """Install, with the shared downloads if only wheels are allowed."""
        command = [f"{self.place}/bin/python", "-m", "pip", "install"]
        command += ["--no-input", "--progress-bar=off", "--disable-pip-version-check"]
        mounts = [*self.packages.settings.mounts]
        if wheels:
            downloads = self.packages.cache / "pip"
            downloads.mkdir(parents=True, exist_ok=True)
            mounts.append(Mount(downloads, _DOWNLOADS, writable=True))
            options = [f"--cache-dir={_DOWNLOADS}", "--only-binary=:all:"]
        else:
            options = ["--no-cache-dir"]
        return self._run([*command, *words, *options], mounts, self.packages.settings.env)

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
                *mounts,
                Mount(own_pip(), f"{PIP_FOLDER}/pip"),
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


def own_pip() -> Path:
    """The folder of the pip that is installed with the harness."""
    spec = importlib.util.find_spec("pip")
    if spec is None or spec.origin is None:
        raise SandboxError(
            "pip is missing beside the harness: install it with `uv pip install pip`"
        )
    return Path(spec.origin).parent


def hide(text: str) -> str:
    """A text without the credentials of URLs in it."""
    return _CREDENTIALS.sub("…", text)


def _digest(words: Sequence[str], python: str, place: str) -> str:
    host = (sysconfig.get_platform(), *platform.libc_ver(), str(Path(python).resolve()))
    identity = json.dumps([_FORMAT, list(words), place, host])
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _grouped(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The words with each option's value beside it."""
    groups: list[tuple[str, ...]] = []
    rest = iter(words)
    for word in rest:
        takes_value = word in (*_WITH_VALUE, *_WITH_VALUE_AND_BUILDS)
        groups.append((word, next(rest, "")) if takes_value else (word,))
    return groups


def _can_be_wheels(groups: Sequence[tuple[str, ...]]) -> bool:
    return all(
        first in (*_WITH_VALUE, *_WITHOUT_VALUE) or _NAMED.fullmatch(first) for first, *_ in groups
    )


def _one_by_one(groups: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    """Each requirement with all options."""
    options = [word for group in groups if group[0].startswith("-") for word in group]
    return ([*options, *group] for group in groups if not group[0].startswith("-"))


def _says(result: ProcessResult, texts: Sequence[str]) -> bool:
    return any(text in result.output for text in texts)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that the end of this process lets go."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
