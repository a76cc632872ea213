"""What the look-alike engine runs in its containers: starts commands as it is told, and lists them.

It is run inside of a sandbox, by a Python that has nothing but its own modules.
"""

from __future__ import annotations

import array
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any


def serve(place: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen(16)
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    with connection, suppress(BrokenPipeError):
        data, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(16))
        told = json.loads(data)
        if told["do"] == "end":
            os._exit(0)
        elif told["do"] == "list":
            connection.sendall(json.dumps(others()).encode())
        else:
            fds = array.array("i")
            for _, _, content in ancillary:
                fds.frombytes(content)
            run(told, list(fds), connection)


def run(told: dict[str, Any], fds: list[int], connection: socket.socket) -> None:
    process = subprocess.Popen(
        told["command"],
        stdin=fds[0],
        stdout=fds[1],
        stderr=fds[2],
        env=told["env"],
        cwd="/",
        start_new_session=True,
    )
    for fd in fds:
        os.close(fd)
    code = process.wait()
    connection.sendall(json.dumps(code if code >= 0 else 128 - code).encode())


def others() -> list[tuple[int, str]]:
    """Number and state of each process but this one, and the first of the namespace."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) not in (1, os.getpid()):
            with suppress(FileNotFoundError, ProcessLookupError):
                state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0]
                found.append((int(name), state))
    return found


if __name__ == "__main__":
    serve(sys.argv[1])
