"""Started as a script by `unshare.py`: makes the namespaces, builds the view, runs the command.

Needs the standard library alone, and of that little: half of the time that a start takes would be
imports. Arguments are two open files: where to report (see `process.py`), and the view to build, as
`marshal` writes it, which the same interpreter reads.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NEW_NAMESPACES = (
    0x00020000  # mounts
    | 0x04000000  # host name
    | 0x08000000  # interprocess communication
    | 0x20000000  # processes
)
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEV, _NO_EXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_DETACH = 2
_SET_DEATH_SIGNAL, _IN_BOUNDING, _DROP_BOUNDING, _NO_NEW_PRIVILEGES = 1, 23, 24, 38
_SET_DUMPABLE, _SET_FILTER, _BY_PROGRAM, _FILTER_STEP = 4, 22, 2, 8
_CAPABILITY_VERSION = 0x20080522
_SIGKILL, _SIGPIPE, _SIGXFSZ = 9, 13, 25
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INTERNET, _DATAGRAMS = 2, 2
_SET_INTERFACE_FLAGS, _INTERFACE_UP = 0x8914, 1
_OLD_ROOT, _NEW_ROOT = "/.old", "/.new"
_SETTINGS = "/proc/sys"
_SHOW_ROOT, _CLOSE_SETTINGS = b"u", b"s"

_libc = ctypes.CDLL(None, use_errno=True)

_flags_of: dict[str, int | None] = {}
"""Of each mount that was made: what is to be added, also for those below it; None is nothing."""


def main() -> None:
    """Enter new namespaces, and become their first process's parent."""
    status_fd, view_fd = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(status_fd, False)
    with os.fdopen(view_fd, "rb") as file:
        view = marshal.load(file)
    own_users = 0 if view["user"] is not None else _NEW_USERS
    own_network = 0 if view["network"] else _NEW_NETWORK
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEW_NAMESPACES | own_users | own_network), "new namespaces")
    # Only now: entering a user namespace clears the death signal.
    _die_with_parent()
    if own_users:
        _map_root(os.open("/proc/self", _FOLDER), uid, gid)
    reported, report = os.pipe()
    asked, ask = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(report)
        os.close(asked)
        _die_with_parent()
        if os.read(reported, 1):
            _be_first(view, status_fd, reported, ask)
        os._exit(1)
    os.close(ask)
    os.write(status_fd, b'{"child-pid": %d}\n' % first)
    os.close(status_fd)
    # Opened as long as the host's own are seen.
    of_first = os.open(f"/proc/{first}", _FOLDER)
    os.write(report, b".")
    while question := os.read(asked, 1):
        if question == _SHOW_ROOT:
            _map_root(of_first, view["user"], view["user"])
        else:
            flags = _READ_ONLY | _NO_SUID | _NO_DEV | _NO_EXEC
            _mount(None, _SETTINGS, None, _REMOUNT | _BIND | flags)
        os.write(report, b".")
    os.waitpid(first, 0)


def _map_root(process: int, uid: int, gid: int) -> None:
    """Show a user and a group of the outside as root in a process's user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        fd = os.open(name, os.O_WRONLY, dir_fd=process)
        os.write(fd, text.encode())
        os.close(fd)
    os.close(process)


def _be_first(view: dict[str, Any], status_fd: int, reported: int, ask: int) -> None:
    """Run the command; the death of this process then takes along whatever is left."""
    code = 1
    try:
        hostname = os.fsencode(view["hostname"])
        _check(_libc.sethostname(hostname, len(hostname)), "name of the host")
        if not view["network"]:
            _loopback_up()
        _build(view)
        _enter_folder(view)
        if view["user"] is not None:
            _become(view["user"], reported, ask)
        _drop_capabilities()
        if view["filter"]:
            _filter_calls(view["filter"])
        os.close(reported)
        os.close(ask)
        # Nothing inside may look into this process, which reports.
        _check(_libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0), "hide the first process")
        command = os.fork()
        if command == 0:
            _check(_libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0), "show the command")
            os.setsid()
            for ignored_by_python in (_SIGPIPE, _SIGXFSZ):
                _libc.signal(ignored_by_python, None)
            # By now nothing of the container was loaded. Its limits are set before the answer.
            os.write(0, b"\n")
            if not os.read(0, 1):
                os._exit(1)
            os.execve(view["command"][0], view["command"], view["env"])
        status = _reap_until(command)
        os.write(status_fd, b'{"exit-code": %d}\n' % status)
        code = 0
    except OSError as error:
        print(error.strerror, file=sys.stderr, flush=True)
    os._exit(code)


def _enter_folder(view: dict[str, Any]) -> None:
    try:
        os.chdir(view["cwd"])
    except OSError as error:
        raise OSError(error.errno, view["no_folder"] + str(error.strerror)) from None


def _become(user: int, reported: int, ask: int) -> None:
    """Be root no more, but for a user that looks like it from inside where that can be had."""
    for output in (1, 2):
        # Else it could not be opened again as /dev/stdout.
        os.fchown(output, user, user)
    os.setgroups([])
    if _libc.unshare(_NEW_USERS) == 0:
        _have_done(_SHOW_ROOT, reported, ask)
        user = 0
    else:
        _drop_bounding_set()
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # Whoever becomes another user has no death signal any more.
    _die_with_parent()
    if user == 0:
        _forbid_user_namespaces(_SETTINGS)
    _have_done(_CLOSE_SETTINGS, reported, ask)


def _have_done(question: bytes, reported: int, ask: int) -> None:
    """Wait for what takes root, who is still the parent of this process."""
    os.write(ask, question)
    if not os.read(reported, 1):
        os._exit(1)


def _reap_until(command: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _build(view: dict[str, Any]) -> None:
    """Make a new root of what the view names, and leave the old one."""
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NO_SUID | _NO_DEV, "mode=755")
    os.mkdir(f"/tmp{_OLD_ROOT}")
    _check(_libc.pivot_root(b"/tmp", f"/tmp{_OLD_ROOT}".encode()), "new root")
    os.chdir("/")
    root = "" if view["root"] is None else _NEW_ROOT
    if root:
        _bind(_OLD_ROOT + view["root"], root, _NO_DEV)
    else:
        _mount_new("tmpfs", "/tmp", _NO_SUID | _NO_DEV, "mode=1777")
    _mount_new("proc", f"{root}/proc", _NO_SUID | _NO_DEV | _NO_EXEC, "")
    # The host's own settings are meant as long as this is the host's root.
    if view["user"] is None:
        _forbid_user_namespaces(root + _SETTINGS)
    for path in view["proc_read_only"]:
        if os.path.exists(root + path):
            later = path == _SETTINGS and view["user"] is not None
            _bind(root + path, root + path, 0 if later else _READ_ONLY)
    _make_devices(f"{root}/dev", view["devices"], view["shared_memory"])
    for source, target, writable in view["mounts"]:
        _bind(_OLD_ROOT + source, root + target, _NO_DEV | (0 if writable else _READ_ONLY))
    for place, target in view["links"].items():
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(target, place)
    for place, text in view["files"].items():
        _write(place, text)
    _add_flags()
    if root:
        os.chdir(root)
        # Onto itself: the old root, with all that lies below it, is then what is on top here.
        _check(_libc.pivot_root(b".", b"."), "the container's root")
        _check(_libc.umount2(b".", _DETACH), "leave the old root")
    else:
        _check(_libc.umount2(_OLD_ROOT.encode(), _DETACH), "leave the old root")
        os.rmdir(_OLD_ROOT)
        _mount(None, "/", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEV)


def _forbid_user_namespaces(settings: str) -> None:
    """With one of its own a process had capabilities again, and could lift its limits."""
    _write(f"{settings}/user/max_user_namespaces", "0")


def _make_devices(folder: str, names: list[str], shared_memory: int) -> None:
    _mount_new("tmpfs", folder, _NO_SUID | _NO_DEV, "mode=755")
    for name in names:
        # Read-only stops root from changing the host's node, and not from writing to the device.
        _bind(f"{_OLD_ROOT}/dev/{name}", f"{folder}/{name}", _READ_ONLY | _NO_EXEC)
    size = f"mode=1777,size={shared_memory}"
    _mount_new("tmpfs", f"{folder}/shm", _NO_SUID | _NO_DEV, size)
    options = "newinstance,ptmxmode=0666,mode=620"
    _mount_new("devpts", f"{folder}/pts", _NO_SUID | _NO_EXEC, options)
    os.symlink("pts/ptmx", f"{folder}/ptmx")
    os.symlink("/proc/self/fd", f"{folder}/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{folder}/{name}")
    _mount(None, folder, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEV)


def _mount_new(kind: str, target: str, flags: int, options: str) -> None:
    os.makedirs(target, exist_ok=True)
    _mount(kind, target, kind, flags, options)
    _flags_of[target] = None


def _bind(source: str, target: str, flags: int) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write(target, "")
    _mount(source, target, None, _BIND | _RECURSIVE)
    _flags_of[target] = flags


def _add_flags() -> None:
    """Give each mount its flags, and those that came along below it."""
    with open(f"{_OLD_ROOT}/proc/self/mountinfo", "rb") as file:
        places = [_unescaped(line.split()[4]) for line in file]
    for place in places:
        above = place
        while above not in _flags_of and above != "/":
            above = os.path.dirname(above)
        flags = _flags_of.get(above)
        if flags is not None:
            # Flags that the host has set are locked here, and have to be named again.
            kept = os.statvfs(place).f_flag & (_READ_ONLY | _NO_SUID | _NO_DEV | _NO_EXEC)
            _mount(None, place, None, _REMOUNT | _BIND | _NO_SUID | flags | kept)


def _unescaped(field: bytes) -> str:
    first, *others = field.split(b"\\")
    # A space is there as its octal number.
    return os.fsdecode(first + b"".join(bytes([int(o[:3], 8)]) + o[3:] for o in others))


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str = ""
) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _check(result, f"mount {target}")


def _loopback_up() -> None:
    interface = _libc.socket(_INTERNET, _DATAGRAMS, 0)
    flags = _INTERFACE_UP.to_bytes(2, sys.byteorder)
    fcntl.ioctl(interface, _SET_INTERFACE_FLAGS, b"lo".ljust(16, b"\0") + flags + bytes(14))
    os.close(interface)


def _drop_bounding_set() -> None:
    with open("/proc/sys/kernel/cap_last_cap", encoding="utf-8") as file:
        last = int(file.read())
    for capability in range(last + 1):
        if _libc.prctl(_IN_BOUNDING, capability, 0, 0, 0) == 1:
            _check(_libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0), "drop capabilities")


def _drop_capabilities() -> None:
    _drop_bounding_set()
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "forbid new privileges")
    header = _CAPABILITY_VERSION.to_bytes(4, sys.byteorder) + bytes(4)
    _check(_libc.capset(header, bytes(24)), "drop capabilities")


def _filter_calls(program: bytes) -> None:
    """Refuse system calls, here and in all that is started."""

    class Program(ctypes.Structure):
        _fields_ = (("steps", ctypes.c_ushort), ("program", ctypes.c_char_p))

    given = Program(len(program) // _FILTER_STEP, program)
    _check(_libc.prctl(_SET_FILTER, _BY_PROGRAM, ctypes.byref(given), 0, 0), "filter calls")


def _die_with_parent() -> None:
    _check(_libc.prctl(_SET_DEATH_SIGNAL, _SIGKILL, 0, 0, 0), "die with parent")


def _write(place: str, text: str) -> None:
    with open(place, "w", encoding="utf-8") as file:
        file.write(text)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(error.strerror)
