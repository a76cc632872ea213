"""What processes find besides the system and the task's files: packages, tools and stand-ins."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.limits.keeper import DEFAULT_LIMITS, Limits
from harness.sandbox.packages.index_settings import IndexSettings
from harness.sandbox.packages.pips import brought, is_for, own_pip, unpacked
from harness.sandbox.packages.virtual_environments import (
    PIP_FOLDER,
    NetworkRunner,
    Packages,
)
from harness.schema.environment import Equipment
from harness.values import Mount

_PACKAGES = "/opt/venv"
_TOOLS = "/opt/uvx"
_STAND_INS = "/opt/stand-ins"
_STAND_INS_HERE = Path(__file__).with_name("stand_ins")
_BUILD_TIMEOUT_S = 600.0
_PROBE_TIMEOUT_S = 30.0
_NO_SETTINGS = IndexSettings()
_OF_VERSION = "--python="

# There is no network to ask for a newer pip, or to try again.
_PIP_OFFLINE = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_RETRIES": "0"}


@dataclass(frozen=True, slots=True)
class Equipped:
    """An equipment as a container shows it."""

    mounts: tuple[Mount, ...] = ()
    path: tuple[str, ...] = ()
    """Folders that come before all others in PATH."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further variables."""
    notes: tuple[str, ...] = ()
    """What is otherwise than the task asks for."""


def equip(
    equipment: Equipment,
    cache: Path | None,
    runner: NetworkRunner,
    *,
    settings: IndexSettings = _NO_SETTINGS,
    progress: Callable[[str], None] = lambda _: None,
    timeout_s: float = _BUILD_TIMEOUT_S,
    limits: Limits = DEFAULT_LIMITS,
) -> Equipped:
    """Have everything of an equipment at hand, built now if it is the first time.

    Args:
        equipment: What is asked for.
        cache: Folder of this host that keeps environments and downloads; None if nothing may.
        runner: Runs pip, with the host's network.
        settings: Where this host's pip finds packages.
        progress: Told what is being built, before it is.
        timeout_s: Seconds that one step of a build may take.
        limits: What a build may use.

    Raises:
        SandboxError: an environment cannot be built; the text says why.
    """
    chosen = _python(equipment.python, runner, _Python(view.interpreter()))
    own_python = chosen.path == view.interpreter()
    notes = [*chosen.notes]
    if own_python and not (equipment.packages or equipment.tools or equipment.stand_ins):
        return Equipped(notes=chosen.notes)

    def environment(words: Sequence[str], python: _Python, place: str) -> Mount:
        if cache is None:
            raise SandboxError("nothing can be installed: the sandbox has no cache to keep it in")
        pip = _pip(python, cache)
        given = (cache, runner, settings, progress, timeout_s, limits, pip, python.mounts)
        built = Packages(*given).environment(words, python.path, place)
        notes.extend(
            f"{asked} has no wheel for Python {python.version}, and {found} is used"
            for asked, found in built.taken.items()
        )
        return Mount(built.folder, place)

    mounts, path = [*chosen.mounts, Mount(_pip(chosen, cache), f"{PIP_FOLDER}/pip")], []
    if equipment.stand_ins:
        mounts.append(Mount(_STAND_INS_HERE, _STAND_INS))
        path.append(f"{_STAND_INS}/bin")
    if equipment.packages or not (own_python or chosen.mounts):
        mounts.append(environment(equipment.packages, chosen, _PACKAGES))
        path.append(f"{_PACKAGES}/bin")
    elif chosen.mounts:
        path.append(str(Path(chosen.path).parent))
    for requirements in equipment.tools:
        words = [word for word in requirements if not word.startswith(_OF_VERSION)]
        asked = next((word for word in requirements if word not in words), "")
        own = _python(asked.removeprefix(_OF_VERSION), runner, chosen)
        notes += own.notes
        place = f"{_TOOLS}/{tool_key(requirements)}"
        mounts += [*own.mounts, environment(words, own, place)]
    once = tuple(dict.fromkeys(mounts)), tuple(path), _PIP_OFFLINE, tuple(dict.fromkeys(notes))
    return Equipped(*once)


def tool_key(requirements: Sequence[str]) -> str:
    """Name of the environment of a tool; the stand-in for `uvx` makes the same from its words."""
    lines = "".join(f"{requirement}\n" for requirement in sorted(set(requirements)))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Python:
    """An interpreter, as the sandbox names it."""

    path: str
    mounts: tuple[Mount, ...] = ()
    """What it needs beside the system."""
    notes: tuple[str, ...] = ()
    pip: Path | None = None
    """A wheel of one that runs with it, where the harness's own does not."""

    @property
    def version(self) -> str:
        """Its first two numbers."""
        return Path(self.path).resolve().name.removeprefix("python")


def _python(asked: str | None, runner: NetworkRunner, otherwise: _Python) -> _Python:
    """The interpreter to use, with a note if it is not what was asked for.

    Args:
        asked: the version.
        runner: runs it, to see whether it works.
        otherwise: used if no version is asked for, or one that is not here.
    """
    own = view.interpreter()
    match = re.match(r"\d+\.\d+", asked or "")
    if match is None:
        return otherwise
    wanted = f"python{match[0]}"
    real = Path(own).resolve().name
    if real == wanted:
        return _Python(own)
    for prefix in (Path("/usr/local"), Path("/usr")):
        if (prefix / "bin" / wanted).exists() and _has_pip(prefix, match[0]):
            return _Python(f"{prefix}/bin/{wanted}", pip=_other_pip(prefix, match[0]))
    elsewhere = _elsewhere(wanted, Path(sys.base_prefix), runner)
    if elsewhere is not None:
        return elsewhere
    note = f"Python {match[0]} is asked for, and python{otherwise.version} is used"
    return replace(otherwise, notes=(*otherwise.notes, note))


@lru_cache(maxsize=64)
def _elsewhere(wanted: str, own: Path, runner: NetworkRunner) -> _Python | None:
    """An interpreter that does not belong to the system; found once for a process."""
    version = wanted.removeprefix("python")
    for prefix in installations(own):
        if not _has_pip(prefix, version):
            continue
        # Of a virtual environment only the first of the two is there.
        if (prefix / "bin" / wanted).exists() and (prefix / "lib" / wanted / "os.py").exists():
            # Some find their libraries only where they were installed.
            for place in (f"/opt/{wanted}", str(prefix)):
                mounts, pip = (Mount(prefix, place),), _other_pip(prefix, version)
                found = _Python(f"{place}/bin/{wanted}", mounts, pip=pip)
                if _works(found, runner):
                    return found
    return None


def _pip(python: _Python, cache: Path | None) -> Path:
    """The folder of the pip that goes with it."""
    return unpacked(python.pip, cache / "pips") if python.pip and cache else own_pip()


def _has_pip(prefix: Path, version: str) -> bool:
    return is_for(version) or brought(prefix, version) is not None


def _other_pip(prefix: Path, version: str) -> Path | None:
    return None if is_for(version) else brought(prefix, version)


def installations(prefix: Path) -> Iterator[Path]:
    """The harness's own Python and those beside it, as uv and pyenv lay them; none of the system.

    Args:
        prefix: of the harness's own.
    """
    if prefix.parent in (Path("/"), Path("/usr")):
        return
    yield prefix
    with suppress(OSError):
        yield from sorted(one for one in prefix.parent.iterdir() if one != prefix)


def _works(python: _Python, runner: NetworkRunner) -> bool:
    """Whether it runs where it is shown."""
    done = runner.run(
        [python.path, "-c", "import ssl, venv"],
        mounts=python.mounts,
        timeout_s=_PROBE_TIMEOUT_S,
        cwd="/tmp",
        env={},
        network=False,
        keeper=None,
    )
    return done.exit_code == 0
