"""Carrying what an agent left from its machine to that of a verifier of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from harness.containers import Container
from harness.schema.environment import Artifact

LIMIT_BYTES = 2 << 30
"""Of one artifact; a larger one is not carried."""


def carry(artifacts: Iterable[Artifact], source: Container, target: Container) -> tuple[str, ...]:
    """Put each artifact where it was, on another machine; says which could not be.

    An artifact that is missing or too large is left out, as in Harbor: the verifier judges what
    there is.
    """
    missing = []
    with tempfile.TemporaryDirectory(prefix="harness-artifacts-") as folder:
        for number, artifact in enumerate(artifacts):
            place = Path(folder, str(number))
            try:
                source.download(artifact.source, place, limit=LIMIT_BYTES)
                _leave_out(place, artifact.exclude)
                target.upload(place, artifact.source)
            except OSError as error:
                missing.append(f"{artifact.source}: {error.strerror or error}")
    return tuple(missing)


def _leave_out(folder: Path, patterns: Sequence[str]) -> None:
    """Remove what a pattern names: a path below the folder, or the end of one."""
    if not patterns or not folder.is_dir():
        return
    # The deepest first: a folder that goes takes what is in it along.
    for path in sorted(folder.rglob("*"), reverse=True):
        if any(_names(pattern, path.relative_to(folder)) for pattern in patterns):
            with suppress(FileNotFoundError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _names(pattern: str, path: PurePath) -> bool:
    ends = ("/".join(path.parts[start:]) for start in range(len(path.parts)))
    return any(fnmatchcase(end, pattern.removeprefix("./").rstrip("/")) for end in ends)
