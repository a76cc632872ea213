"""The machine that tools act on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from harness.containers import Container, Sandbox
from harness.errors import InfrastructureError
from harness.schema.environment import Environment


class Machine:
    """A trial's container, made when it is first needed: a replay needs none."""

    def __init__(
        self,
        environment: Environment,
        sandbox: Callable[[], Sandbox],
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Make nothing yet.

        Args:
            environment: What the container is made of.
            sandbox: Makes it.
            env: The environment's variables, if they are not as it says.
        """
        self.environment = environment
        self._sandbox = sandbox
        self._env = environment.env if env is None else env
        self._lock = threading.Lock()
        self._container: Container | None = None
        self._closed = False

    @property
    def workdir(self) -> str:
        """Where commands run."""
        return self.environment.workdir

    @property
    def container(self) -> Container:
        """The container.

        Raises:
            SandboxError: it cannot be made.
        """
        with self._lock:
            if self._closed:
                raise InfrastructureError("the trial's container is closed")
            if self._container is None:
                self._container = self._made()
            return self._container

    def _made(self) -> Container:
        container = self._sandbox().open(self.environment, self._env)
        folder, place = self.environment.skills, self.environment.skills_dir
        if folder is not None and place is not None:
            try:
                container.upload(folder, place)
            except BaseException:
                container.close()
                raise
        return container

    @property
    def opened(self) -> Container | None:
        """The container, if there is one already."""
        with self._lock:
            return self._container

    def close(self) -> None:
        """Remove the container, if there is one."""
        with self._lock:
            self._closed = True
            if self._container is not None:
                self._container.close()
                self._container = None
