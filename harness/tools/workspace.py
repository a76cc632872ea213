"""The folder that a trial works in: a copy of the task's, thrown away afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

from harness.errors import InfrastructureError
from harness.schema.environment import CopyFiles, Environment


class Workspace:
    """A fresh copy of a task's working folder, made when it is first needed.

    Beside it is a folder for temporary files, so that /tmp lasts from one call to the next.
    """

    def __init__(self, environment: Environment) -> None:
        (files,) = environment.build
        assert isinstance(files, CopyFiles)
        self._source = environment.context / files.sources[0]
        self._lock = threading.Lock()
        self._base: Path | None = None
        self._closed = False

    @property
    def path(self) -> Path:
        """Where the copy is on the host; tools see it as /workspace."""
        return self._ready() / "workspace"

    @property
    def temporary(self) -> Path:
        """Where temporary files are on the host; tools see it as /tmp."""
        return self._ready() / "tmp"

    def close(self) -> None:
        """Remove the copy, if there is one."""
        with self._lock:
            self._closed = True
            if self._base is not None:
                _remove(self._base)
                self._base = None

    def _ready(self) -> Path:
        with self._lock:
            if self._closed:
                raise InfrastructureError(f"the workspace of {str(self._source)!r} is closed")
            if self._base is None:
                base = Path(tempfile.mkdtemp(prefix="harness-"))
                try:
                    shutil.copytree(self._source, base / "workspace", symlinks=True)
                    (base / "tmp").mkdir()
                except OSError as error:
                    _remove(base)
                    raise InfrastructureError(
                        f"cannot copy the working folder {str(self._source)!r}: {error}"
                    ) from error
                self._base = base
            return self._base


def _remove(folder: Path) -> None:
    # An agent may have closed its folders to everybody, itself included.
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder)
