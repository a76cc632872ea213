"""The pool of processes: how its workers begin, and that they end with who started them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys, threading, time
from harness.backends.local import LocalBackend

seen = "as imported"

def item(number):
    if number == 3:
        # At once: what print writes, others may write into.
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(600)
    return [seen]

if __name__ == "__main__":
    seen = "as it became"
    if sys.argv[1] == "beside a thread":
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    items = [3, 3] if sys.argv[1] == "for long" else [1, 2]
    print(*LocalBackend(2).run(item, items), sep=", ", flush=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize(
    ("how", "seen"),
    [("alone", "as it became, as it became"), ("beside a thread", "as imported, as imported")],
)
def test_workers_are_copies_only_of_a_process_that_works_alone(script: Path, how: str, seen: str):
    command = [sys.executable, str(script), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (f"{seen}\n", "")


def test_each_worker_ends_with_the_process_that_began_it_whatever_the_others_do(script: Path):
    command = [sys.executable, str(script), "for long"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first, second = sorted(int(process.stdout.readline()) for _ in range(2))
        ended = os.pidfd_open(first)
        os.kill(second, signal.SIGSTOP)
        process.send_signal(signal.SIGKILL)
        try:
            assert select.select([ended], [], [], 30)[0]
        finally:
            os.close(ended)
            os.kill(second, signal.SIGCONT)
        # The other end is theirs as well.
        assert process.communicate(timeout=30)[0] == ""
