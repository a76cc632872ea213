"""The files of a container, through the engine's archives: nothing is run inside for it."""

from __future__ import annotations

import base64
import binascii
import errno
import os
import posixpath
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from pydantic import ValidationError

from harness.errors import SandboxError
from harness.sandbox.engine.answers import PathState
from harness.sandbox.engine.api import Engine
from harness.sandbox.engine.packing import Packer, first_file, unpack
from harness.values import FileContent

_MAX_LINKS = 40
_LONGEST_PATH = 4095
_LONGEST_NAME = 255
_TRANSFER_S = 600.0


class Files:
    """Files by the paths that processes of the container name them with.

    The engine follows the links on the way, and never out of the container.
    """

    def __init__(self, engine: Engine, container: str, workdir: str) -> None:
        self._engine = engine
        self._path = f"/containers/{container}/archive"
        self._workdir = workdir

    def place(self, path: str) -> str:
        """The absolute form of a path.

        Raises:
            OSError: no kernel would take it.
        """
        place = posixpath.normpath(posixpath.join(self._workdir, path)).replace("//", "/")
        try:
            raw = os.fsencode(place)
        except UnicodeEncodeError:
            raw = b"\0"
        if b"\0" in raw:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if len(raw) > _LONGEST_PATH or max(map(len, raw.split(b"/"))) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return place

    def found(self, path: str) -> tuple[str, PathState]:
        """Where a path leads, and what is there.

        Raises:
            OSError: there is nothing, or it cannot be reached.
        """
        place = self.place(path)
        for _ in range(_MAX_LINKS):
            state = self._state(place)
            if state is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if not state.is_link:
                return place, state
            folder = posixpath.dirname(place)
            place = self.place(posixpath.join(folder, state.link_target))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def read(self, path: str, limit: int) -> FileContent:
        """The beginning of a plain file."""
        place, state = self.found(path)
        _hold_plain(state)
        query = {"path": place}
        with self._engine.reading("GET", self._path, query, may_be_gone=True) as body:
            return FileContent(*first_file(body, limit))

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a plain file, and the folders on its way."""
        place, mode = self.place(path), 0o644
        try:
            place, state = self.found(path)
        except FileNotFoundError:
            pass
        else:
            _hold_plain(state)
            mode = state.permissions
        self._put(place, lambda packer, name: packer.file(name, content, mode))

    def upload(
        self, source: Path, target: str, *, merge: bool, without: Collection[str] = ()
    ) -> None:
        """Copy a file or folder of the host to a place inside, with its modes."""
        place = self.place(target)
        if not source.is_dir():
            self._put(place, lambda packer, name: packer.host_file(source, name))
            return
        if merge:
            try:
                place, state = self.found(target)
            except FileNotFoundError:
                pass
            else:
                if not state.is_folder:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                self._unpack(place, lambda packer: packer.host_folder(source, "", without))
                return
        was_there = self._state(place) is not None

        def pack(packer: Packer, name: str) -> None:
            if was_there:
                # A file takes the place of whatever is there, and the folder that of the file: so
                # the engine removes it, and no program of the container has a part in it.
                packer.file(name, b"")
            packer.folder(name, 0o755 if merge else source.stat().st_mode)
            packer.host_folder(source, name, without)

        self._put(place, pack)

    def download(self, source: str, target: Path, *, limit: int) -> None:
        """Copy a file or folder from inside to a new place on the host; links are left out."""
        place, state = self.found(source)
        if not (state.is_folder or state.is_file):
            raise OSError(errno.EINVAL, "not a file")
        if state.is_file and state.size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        query = {"path": place}
        with self._engine.reading(
            "GET", self._path, query, timeout_s=_TRANSFER_S, may_be_gone=True
        ) as body:
            unpack(body, posixpath.basename(place), target, limit)

    def make_folders(self, *paths: str) -> None:
        """Make folders, and those above them; one that is there stays as it is."""
        for path in paths:
            try:
                self.found(path)
            except FileNotFoundError:
                self._put(self.place(path), lambda packer, name: packer.folder(name))

    def _put(self, place: str, pack: Callable[[Packer, str], None]) -> None:
        """Unpack something at a place, in folders that are made if they are missing."""
        if place == "/":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        folder, missing = self._above(posixpath.dirname(place))

        def pack_all(packer: Packer) -> None:
            for count in range(len(missing)):
                packer.folder("/".join(missing[: count + 1]))
            pack(packer, "/".join((*missing, posixpath.basename(place))))

        self._unpack(folder, pack_all)

    def _above(self, folder: str) -> tuple[str, list[str]]:
        """The last folder on a way that is there, and the names of those that follow it."""
        missing: list[str] = []
        while True:
            try:
                place, state = self.found(folder)
            except FileNotFoundError:
                if folder == "/":
                    raise SandboxError("the engine has no such container any more") from None
                missing.insert(0, posixpath.basename(folder))
                folder = posixpath.dirname(folder)
                continue
            if not state.is_folder:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return place, missing

    def _unpack(self, folder: str, pack: Callable[[Packer], None]) -> None:
        with tempfile.TemporaryFile(prefix="harness-") as file:
            packer = Packer(file)
            pack(packer)
            packer.close()
            query = {"path": folder}
            self._engine.call("PUT", self._path, query, content=file, timeout_s=_TRANSFER_S)

    def _state(self, place: str) -> PathState | None:
        """What lies at a place itself; None if there is nothing."""
        query = {"path": place}
        answer = self._engine.call("HEAD", self._path, query, expect=(200, 400, 404, 500))
        if answer.status == 404:
            return None
        if answer.status != 200:
            # It has no body that would say more; a file that is not a folder is the usual reason.
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        header = answer.headers.get("x-docker-container-path-stat", "")
        try:
            return PathState.model_validate_json(base64.b64decode(header, validate=True))
        except (binascii.Error, ValidationError):
            raise SandboxError(
                f"the engine's answer to HEAD {self._path} cannot be read: {header[:100]!r}"
            ) from None


def _hold_plain(state: PathState) -> None:
    if state.is_folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not state.is_file:
        raise OSError(errno.EINVAL, "not a file")
