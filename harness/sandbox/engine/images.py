"""The images that containers are made of: built once for each content of a build context."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from harness.errors import SandboxError
from harness.sandbox.engine.answers import Image, Progress
from harness.sandbox.engine.api import Body, Engine, Query, told
from harness.sandbox.engine.packing import Packer, entries
from harness.schema.environment import CopyFiles, Environment

LABEL = "loop-harness.context"
"""Of an image that was built here: the digest of its build context."""

_NAME = "loop-harness/task"
_PULL_S = 1800.0
_SHOWN_LINES = 5
_SHOWN_OUTPUT = 600
_READ_BY_BUILDS = ("Dockerfile", ".dockerignore")


class Images:
    """The images of an engine."""

    def __init__(self, engine: Engine, cache: Path | None, progress: Callable[[str], None]) -> None:
        """Look at nothing yet.

        Args:
            engine: Has them.
            cache: A folder of this host, for locks: what several processes need is built once.
                Without one, they may build it beside each other.
            progress: Told what is being built or pulled.
        """
        self._engine = engine
        self._cache = cache
        self._progress = progress

    def of(self, environment: Environment) -> Image:
        """The image of an environment, pulled or built now if it is the first time.

        Raises:
            SandboxError: it cannot be had; the text says what failed.
        """
        if environment.docker_image is not None:
            return self._pulled(environment.docker_image)
        try:
            without = _left_out(environment)
            digest = _digest(environment.context, without)
            with self._locked(digest):
                return self._built(environment, digest, without)
        except OSError as error:
            raise SandboxError(
                f"the build context {str(environment.context)!r} cannot be sent to the engine: "
                f"{error}"
            ) from error

    def _found(self, name: str) -> Image | None:
        path = f"/images/{quote(name)}/json"
        answer = self._engine.call("GET", path, expect=(200, 404))
        return None if answer.status == 404 else told(Image, answer.body, f"GET {path}")

    def _pulled(self, name: str) -> Image:
        found = self._found(name)
        if found is not None:
            return found
        self._progress(f"pulling {name}, once")
        repository, tag = _parts(name)
        problem = f"the image {name!r} cannot be pulled"
        advice = f"`docker pull {name}` may say more"
        query = {"fromImage": repository, "tag": tag}
        try:
            with self._engine.reading("POST", "/images/create", query, timeout_s=_PULL_S) as body:
                _follow(body)
        except SandboxError as error:
            raise SandboxError(f"{problem}: {error}; {advice}") from error
        found = self._found(name)
        if found is None:
            raise SandboxError(f"{problem}: the engine does not say why; {advice}")
        return found

    def _built(self, environment: Environment, digest: str, without: frozenset[str]) -> Image:
        name = f"{_NAME}:{digest[:32]}"
        found = self._found(name)
        if found is not None:
            return found
        context = environment.context
        self._progress(f"building the image of {context}, once")
        query = {
            "t": name,
            "labels": f'{{"{LABEL}":"{digest}"}}',
            "rm": "1",
            "forcerm": "1",
        }
        problem = f"the image of {str(context)!r} cannot be built"
        advice = (
            f"`docker build {context}` may say more, and may know what the engine alone does not "
            "(RUN --mount, here-documents): environment.docker_image then names what it made"
        )
        try:
            self._build(context, without, query, environment.build_timeout_s)
        except SandboxError as error:
            raise SandboxError(f"{problem}: {error}; {advice}") from error
        found = self._found(name)
        if found is None:
            raise SandboxError(f"{problem}: the engine does not say why; {advice}")
        return found

    def _build(
        self,
        context: Path,
        without: frozenset[str],
        query: Query,
        timeout_s: float,
    ) -> None:
        with tempfile.TemporaryFile(prefix="harness-") as file:
            packer = Packer(file)
            packer.host_folder(context, "", without)
            packer.close()
            with self._engine.reading(
                "POST", "/build", query, content=file, timeout_s=timeout_s
            ) as body:
                _follow(body)

    @contextmanager
    def _locked(self, digest: str) -> Iterator[None]:
        if self._cache is None:
            yield
            return
        folder = self._cache / "images"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{digest}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _follow(body: Body) -> None:
    """Read what an engine tells while it works.

    Raises:
        SandboxError: it has failed.
    """
    output = ""
    for line in body.lines():
        if not line.strip():
            continue
        try:
            step = Progress.model_validate_json(line)
        except ValidationError:
            raise SandboxError(f"the engine says {line[:100]!r}") from None
        if step.error is not None:
            reason = " ".join(step.error.split())
            shown = " / ".join([*output.strip().splitlines()[-_SHOWN_LINES:], reason])
            raise SandboxError(shown[-_SHOWN_OUTPUT:])
        output = (output + step.stream)[-_SHOWN_OUTPUT:]


def _left_out(environment: Environment) -> frozenset[str]:
    """What .dockerignore names, and what is in folders that are to be empty.

    Builds read .dockerignore themselves, and the Dockerfile, whatever it says.
    """
    copies = [step for step in environment.build if isinstance(step, CopyFiles)]
    found = {os.path.normpath(path) for copy in copies for path in copy.exclude}
    empty = environment.engine.left_empty
    for folder in empty:
        found.update(f"{folder}/{name}" for name in os.listdir(environment.context / folder))
    return frozenset(found.difference(_READ_BY_BUILDS, empty))


def _digest(context: Path, without: frozenset[str]) -> str:
    """SHA-256 over paths, modes and contents; neither times nor owners count."""
    digest = hashlib.sha256()
    for entry, place in entries(context, without):
        mode = entry.stat(follow_symlinks=False).st_mode
        digest.update(f"{place}\0{mode & 0o170777:o}\0".encode(errors="surrogateescape"))
        if stat.S_ISLNK(mode):
            digest.update(os.fsencode(os.readlink(entry.path)))
        elif stat.S_ISREG(mode):
            with open(entry.path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _parts(image: str) -> tuple[str, str]:
    """An image's repository, and its tag or digest."""
    if "@" in image:
        repository, _, digest = image.partition("@")
        return repository, digest
    folder, slash, last = image.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{folder}{slash}{name}", tag or "latest"
