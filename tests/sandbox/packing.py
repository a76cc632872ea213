"""Packages made on the spot, a folder of them as an index, and a sandbox to install them in."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox.namespaces.bubblewrap import Bubblewrap
from harness.sandbox.namespaces.unshare import Unshare
from harness.sandbox.packages.equipping import Equipped, equip
from harness.sandbox.packages.index_settings import IndexSettings
from harness.schema.environment import Equipment
from harness.values import Mount, ProcessResult

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/python/bin")

BACKEND = """\
import os, zipfile

def build_wheel(folder, settings=None, metadata=None):
    name = "{name}-{version}-py3-none-any.whl"
    found = look()
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("{name}.py", "FOUND = " + repr(found))
        about = "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
        wheel.writestr("{name}-{version}.dist-info/METADATA", about)
        tag = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("{name}-{version}.dist-info/WHEEL", tag)
        wheel.writestr("{name}-{version}.dist-info/RECORD", "")
    return name

"""


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
    scripts: Mapping[str, str] = {},
    files: Mapping[str, str] = {},
    tag: str = "py3-none-any",
) -> None:
    """A wheel with one module, whose `main` prints its name, its version and its arguments.

    Args:
        folder: Where it is made.
        name: The package's, and the module's.
        version: Its version.
        requires: Requirements.
        extras: Names of extras.
        scripts: Commands with their functions.
        files: More that it has: path -> text.
        tag: Which Pythons it is for.
    """
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += "".join(f"Provides-Extra: {extra}\n" for extra in extras)
    about += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    entries = "".join(f"{script} = {function}\n" for script, function in scripts.items())
    module = f"import sys\n\ndef main():\n    print({name!r}, {version!r}, *sys.argv[1:])\n"
    module += '\nif __name__ == "__main__":\n    main()\n'
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as file:
        file.writestr(f"{name}.py", module)
        file.writestr(f"{info}/METADATA", about)
        file.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{entries}")
        file.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        file.writestr(f"{info}/RECORD", "")
        for path, text in files.items():
            file.writestr(path, text)


def sdist(folder: Path, name: str, version: str, look: str) -> None:
    """A package whose build runs the function `look`, and keeps what it gives."""
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": (
            "[project]\n"
            f'name = "{name}"\nversion = "{version}"\n'
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        ),
        "backend.py": BACKEND.format(name=name, version=version) + look,
    }
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def working_sandbox() -> Bubblewrap | Unshare:
    """The first that works on this host."""
    for sandbox in (Bubblewrap(), Unshare()):
        try:
            sandbox.run(["true"], mounts=(), timeout_s=60, cwd="/tmp")
        except SandboxError:
            continue
        return sandbox
    pytest.skip("no sandbox works on this host: install bubblewrap and allow user namespaces")


def only_from(folder: Path) -> IndexSettings:
    """No index but a folder of files."""
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    return IndexSettings(env, (Mount(folder, str(folder)),))


@dataclass
class Workshop:
    """A sandbox with a cache of its own, and packages to choose from."""

    sandbox: Bubblewrap | Unshare
    cache: Path
    index: Path
    told: list[str]

    def equip(self, *packages: str, settings: IndexSettings | None = None) -> Equipped:
        return self.equip_with(Equipment(packages=packages), settings)

    def equip_with(self, equipment: Equipment, settings: IndexSettings | None = None) -> Equipped:
        return equip(
            equipment,
            self.cache,
            self.sandbox,
            settings=settings or only_from(self.index),
            progress=self.told.append,
            timeout_s=120,
        )

    def bash(self, equipped: Equipped, script: str, *mounts: Mount) -> ProcessResult:
        path = ":".join((*equipped.path, *_SYSTEM_PATH))
        return self.sandbox.run(
            ["bash", "-c", script],
            mounts=(*equipped.mounts, *mounts),
            timeout_s=60,
            cwd="/tmp",
            env={**equipped.env, "PATH": path, "HOME": "/tmp"},
        )

    def python(self, equipped: Equipped, script: str) -> str:
        done = self.bash(equipped, f"python3 - <<'END'\n{script}\nEND")
        assert done.exit_code == 0, done.output
        return done.output.strip()


def workshop(folder: Path, sandbox: Bubblewrap | Unshare) -> Workshop:
    index = folder / "index"
    index.mkdir()
    return Workshop(sandbox, folder / "cache", index, [])
