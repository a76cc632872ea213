"""Which pip goes with which Python: the harness's own, or the one that an older Python brings."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import tempfile
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

from harness.errors import SandboxError

_OLDEST = re.compile(r">=\s*(\d+)\.(\d+)")
_OLDEST_SERVED = (3, 8)
"""What the module that stands in for pip runs on."""


def own_pip() -> Path:
    """The folder of the pip that is installed with the harness."""
    spec = importlib.util.find_spec("pip")
    if spec is None or spec.origin is None:
        raise SandboxError(
            "pip is missing beside the harness: install it with `uv pip install pip`"
        )
    return Path(spec.origin).parent


@cache
def is_for(version: str) -> bool:
    """Whether the harness's own pip runs with a version of Python, as `3.9`: it drops old ones."""
    try:
        text = metadata.metadata("pip").json.get("requires_python", "")
    except metadata.PackageNotFoundError:
        return True
    oldest = _OLDEST.search(str(text))
    return oldest is None or _version(version) >= (int(oldest[1]), int(oldest[2]))


def brought(prefix: Path, version: str) -> Path | None:
    """The wheel of the pip that a Python is installed with; None if it has none.

    Args:
        prefix: where the Python is installed.
        version: of the Python.
    """
    if _version(version) < _OLDEST_SERVED:
        return None
    # The second is Debian's, which takes wheels out of Python's own folder.
    bundled = prefix / "lib" / f"python{version}" / "ensurepip" / "_bundled"
    for folder in (bundled, prefix / "share" / "python-wheels"):
        if wheels := sorted(folder.glob("pip-*.whl"), key=_numbers):
            return wheels[-1]
    return None


def unpacked(wheel: Path, folder: Path) -> Path:
    """The folder of a pip that came as a wheel.

    Args:
        wheel: the file.
        folder: keeps what is unpacked for the next time.

    Raises:
        SandboxError: it cannot be read, or not be unpacked there.
    """
    try:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:32]
        place = folder / digest
        if not place.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as partial:
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(Path(partial, "pip"))
                _put(Path(partial, "pip"), place)
    except (OSError, zipfile.BadZipFile) as error:
        # An OSError's whole text would name folders of this machine.
        why = error.strerror if isinstance(error, OSError) else error
        raise SandboxError(f"pip of an older Python cannot be unpacked: {why}") from error
    return place / "pip"


def _put(made: Path, place: Path) -> None:
    try:
        made.rename(place)
    except OSError:
        # Another process was quicker.
        if not place.is_dir():
            raise


def _version(written: str) -> tuple[int, ...]:
    return tuple(map(int, written.split(".")))


def _numbers(wheel: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", wheel.name.split("-")[1])))
