"""What an engine answers, as much of it as is looked at."""

from __future__ import annotations

import stat

from pydantic import BaseModel, ConfigDict, Field, RootModel

# Go's bits of a file's mode.
_FOLDER = 1 << 31
_LINK = 1 << 27
_OTHER_THAN_FILE = (1 << 31) | (1 << 27) | (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19)


class Told(BaseModel):
    """Has more keys than these, and others with each version."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Refusal(Told):
    """Why a request failed."""

    message: str


class Version(Told):
    """What the engine is."""

    api_version: str = Field(alias="ApiVersion")
    os: str = Field(alias="Os")
    """The system of its containers."""


class Made(Told):
    """Something new."""

    id: str = Field(alias="Id", pattern=r"^[\w.:-]+$")


class ExecState(Told):
    """A command that was started in a container."""

    running: bool = Field(alias="Running")
    exit_code: int | None = Field(alias="ExitCode")


class Processes(Told):
    """What `ps` of the engine's host says of a container's processes."""

    titles: tuple[str, ...] = Field(alias="Titles", strict=False)
    rows: tuple[tuple[str, ...], ...] | None = Field(alias="Processes", strict=False)

    @property
    def alive(self) -> int:
        """How many of them are not only waiting to be reaped."""
        column = self.titles.index("STAT") if "STAT" in self.titles else -1
        return sum(not row[column].startswith("Z") for row in self.rows or () if row)


class ImageSettings(Told):
    """What an image says about its processes."""

    user: str = Field(alias="User", default="")
    workdir: str = Field(alias="WorkingDir", default="")
    entrypoint: tuple[str, ...] | None = Field(alias="Entrypoint", default=None, strict=False)


class Image(Told):
    """An image that the engine has."""

    id: str = Field(alias="Id")
    settings: ImageSettings | None = Field(alias="Config", default=None)


class Listed(Told):
    """A container in a list of them."""

    id: str = Field(alias="Id", pattern=r"^[\w.:-]+$")
    created: float = Field(alias="Created", strict=False)
    """Seconds since 1970."""
    labels: dict[str, str] | None = Field(alias="Labels", default=None)


class Containers(RootModel[list[Listed]]):
    """A list of containers."""

    model_config = ConfigDict(frozen=True, strict=True)


class Progress(Told):
    """A line of what is told while an image is built or pulled."""

    stream: str = ""
    """What a build's command wrote."""
    error: str | None = None


class PathState(Told):
    """What lies at a path."""

    size: int
    mode: int
    """As Go has it."""
    link_target: str = Field(alias="linkTarget", default="")

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return bool(self.mode & _FOLDER)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return bool(self.mode & _LINK)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file."""
        return not self.mode & _OTHER_THAN_FILE

    @property
    def permissions(self) -> int:
        """Those of user, group and others."""
        return stat.S_IMODE(self.mode) & 0o777
