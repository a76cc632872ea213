"""What a sandboxed process sees besides its own mounts: the same on every host."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

from harness.errors import SandboxError
from harness.values import Mount

HOSTNAME = "sandbox"

ETC_FILES: Mapping[str, str] = {
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost sandbox\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/passwd": (
        "root:x:0:0:root:/root:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
}
"""Made up: the host's own files name its users and its network."""

PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""Their files check the user id alone, so that root without any capability could write them."""

SHARED_MEMORY_BYTES = 256 << 20
"""Size of /dev/shm: it is memory, which limits of processes do not count."""

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

# Only what programs under /usr cannot do without, about what a slim image has: the rest of /etc
# holds the host's secrets and settings, and each mount costs every process some time.
_ETC_NEEDED = ("alternatives", "fonts", "java-*", "ld.so.cache")
# What names are looked up, servers are recognised and packages are found with.
_ETC_FOR_NETWORK = ("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "pip.conf")
_ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
PYTHON_FOLDER = "/opt/python/bin"
_SYSTEM_PYTHONS = ("/usr/local/bin/python3", "/usr/bin/python3")

# The interpreter's folder is last and always named, so that PATH never tells hosts apart.
PATH = f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{PYTHON_FOLDER}"

# Says that it is ready, and waits for the answer: without one the harness was killed meanwhile.
_ASK = "echo >&0 && read -r _ && "
# By a shell, so that a command that cannot be started says the same in every sandbox.
_START = 'exec "$@" < /dev/null'
# Output is a terminal here. Only the first process of a session can make it its own.
_START_ON_TERMINAL = 'exec "$@" <&1 2>&1'
_OWN_THE_TERMINAL = (
    "import fcntl, os, sys, termios\n"
    "if os.getsid(0) != os.getpid():\n"
    "    os.setsid()\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


def etc_files(*, network: bool) -> dict[str, str]:
    """Files that are written for the sandbox, by place."""
    if not network:
        return dict(ETC_FILES)
    files = {
        **ETC_FILES,
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    with suppress(OSError):
        # A text, since it is a link into /run on many hosts.
        files["/etc/resolv.conf"] = Path("/etc/resolv.conf").read_text(encoding="utf-8")
    return files


@cache
def system_mounts(*, network: bool = False) -> tuple[Mount, ...]:
    """The read-only system folders, and a Python where /usr has none.

    Args:
        network: what is needed to use one as well.
    """
    paths = [Path("/usr"), *(Path("/", name) for name in _ROOT_FOLDERS)]
    for pattern in (*_ETC_NEEDED, *(_ETC_FOR_NETWORK if network else ())):
        paths += sorted(Path("/etc").glob(pattern))
    real = [path for path in paths if path.exists() and not path.is_symlink()]
    mounts = [Mount(path.resolve(), str(path)) for path in real]
    if _system_python() is None:
        mounts.append(Mount(Path(sys.base_prefix).resolve(), sys.base_prefix))
    return tuple(mounts)


@cache
def system_links() -> Mapping[str, str]:
    """Symbolic links at the root, by place."""
    paths = [Path("/", name) for name in _ROOT_FOLDERS]
    links = {str(path): str(path.readlink()) for path in paths if path.is_symlink()}
    python = interpreter()
    if _system_python() is None:
        links[f"{PYTHON_FOLDER}/python3"] = python
    # Debian has no `python`, and models write it most of the time.
    links[f"{PYTHON_FOLDER}/python"] = python
    return links


def interpreter() -> str:
    """The Python that processes find first, by its own path."""
    major, minor = sys.version_info[:2]
    return _system_python() or f"{sys.base_prefix}/bin/python{major}.{minor}"


def environment(cwd: str, extra: Mapping[str, str], *, home: str) -> dict[str, str]:
    """All that a process inherits; nothing of the caller's own."""
    fixed = {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", "TZ": "UTC", "PWD": cwd}
    return {**fixed, **extra}


def start(command: Sequence[str], *, asks: bool, terminal: bool = False) -> list[str]:
    """The arguments that start a command inside.

    Args:
        command: Program and arguments.
        asks: Ask first, on the input, whether to start.
        terminal: The output is a terminal, which the command is to own.
    """
    script = (_ASK if asks else "") + (_START_ON_TERMINAL if terminal else _START)
    started = owning_terminal(command, interpreter()) if terminal else command
    return ["/bin/sh", "-c", script, "sh", *started]


def owning_terminal(command: Sequence[str], python: str) -> list[str]:
    """The arguments that start a command as the owner of the terminal that is its input."""
    return [python, "-I", "-S", "-c", _OWN_THE_TERMINAL, *command]


def check_mounts(mounts: Sequence[Mount]) -> tuple[Mount, ...]:
    """The mounts with their real sources.

    Raises:
        SandboxError: a source is missing, or a target is not a plain absolute path.
    """
    checked = []
    for mount in mounts:
        target = PurePosixPath(mount.target)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise SandboxError(f"mount target {mount.target!r}: must be an absolute path, not /")
        if not mount.source.exists():
            raise SandboxError(f"mount source {str(mount.source)!r}: no such file or folder")
        checked.append(Mount(mount.source.resolve(), str(target), mount.writable))
    return tuple(checked)


def _system_python() -> str | None:
    return next((path for path in _SYSTEM_PYTHONS if Path(path).exists()), None)
