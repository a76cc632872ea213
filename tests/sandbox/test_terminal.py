"""A real shell on a real pseudo-terminal."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox.tty.terminal import ENV, Stop, Terminal

DEADLINE_S = 30


def shell(folder: Path) -> Callable[[int], Stop]:
    """A shell of this host, in a session of its own."""

    def start(terminal: int) -> Stop:
        process = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env={**ENV, "PATH": os.environ["PATH"], "PS1": "$ ", "HOME": str(folder)},
        )

        def stop() -> None:
            process.kill()
            process.wait()

        return stop

    return start


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(shell(tmp_path), columns=80, rows=12)
    yield opened
    opened.close()


def shows(terminal: Terminal, text: str) -> str:
    """The screen, once this is on it."""
    deadline = time.monotonic() + DEADLINE_S
    while text not in (screen := terminal.screen()):
        assert time.monotonic() < deadline, f"{text!r} never came:\n{screen}"
        terminal.wait(0.01)
    return screen


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} never came"
        time.sleep(0.01)


def run(terminal: Terminal, line: str, then: str) -> str | None:
    """Run a line and give the new output, once this is on the screen."""
    terminal.send(f"{line}\n")
    shows(terminal, then)
    return terminal.new_output()


def test_what_is_typed_is_run_and_what_came_of_it_is_the_new_output(terminal: Terminal) -> None:
    assert run(terminal, "echo $((20+1))", "\n21\n$") == "$ echo $((20+1))\n21\n$"
    assert run(terminal, "echo $((20+2))", "\n22\n$") == "$ echo $((20+2))\n22\n$"
    assert terminal.new_output() == "$"


def test_output_that_went_out_of_sight_is_new_output_all_the_same(terminal: Terminal) -> None:
    output = run(terminal, "seq 1000; echo end", "end\n$")
    assert output == "\n".join(["$ seq 1000; echo end", *map(str, range(1, 1001)), "end", "$"])
    assert terminal.screen().startswith("992\n") or terminal.screen().startswith("991\n")


def test_a_cleared_screen_has_no_new_output_and_shows_itself(terminal: Terminal) -> None:
    run(terminal, "echo one", "\none\n$")
    assert run(terminal, "clear; echo $((3*7))", "21\n$") is None
    assert terminal.screen() == "21\n$"


def test_control_keys_reach_the_program(terminal: Terminal, tmp_path: Path) -> None:
    terminal.send("cat > typed\n")
    wait_for(tmp_path / "typed")
    terminal.send("said\n")
    terminal.send("C-d")
    # One process: where one follows another, the key may come when neither is there to take it.
    terminal.send("tail -f typed\n")
    shows(terminal, "$ tail -f typed\nsaid")
    terminal.send("C-c")
    shows(terminal, "^C\n$")


def test_enter_is_what_a_full_screen_program_takes_it_for(terminal: Terminal) -> None:
    terminal.send("stty raw; printf '\\033[?1049h'; head -c 2 | od -An -c; stty sane\n")
    while terminal.new_output() is not None:
        terminal.wait(0.01)
    terminal.send("x\n")
    shows(terminal, "x  \\r")


def test_lines_typed_ahead_are_run_in_order(terminal: Terminal, tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(2000))
    terminal.send(f"cat > typed << 'END'\n{lines}END\necho d''one\n")
    shows(terminal, "done\n$")
    assert (tmp_path / "typed").read_text() == lines


def test_a_full_screen_program_has_the_screen_and_gives_it_back(
    terminal: Terminal, tmp_path: Path
) -> None:
    if shutil.which("less") is None:
        pytest.skip("less is not installed")
    (tmp_path / "book").write_text("".join(f"page {number}\n" for number in range(100)))
    run(terminal, "echo be''fore", "before\n$")
    assert run(terminal, "less book", "page 10\nbook") is None
    terminal.send("PageDown")
    shows(terminal, "page 21\n:")
    terminal.send("Up")
    shows(terminal, "page 20\n:")
    terminal.send("q")
    assert shows(terminal, "before\n$ less book\n$").endswith("$ less book\n$")


def test_wide_characters_take_their_room(terminal: Terminal) -> None:
    assert run(terminal, "printf '日本\\033[5Gx\\n'", "x\n$") == (
        "$ printf '日本\\033[5Gx\\n'\n日本x\n$"
    )


def test_a_flood_costs_little_memory_and_can_be_stopped(terminal: Terminal, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    terminal.send("echo be''gin; yes | head -c 5000000; echo e''nd; touch over\n")
    wait_for(tmp_path / "over")
    shows(terminal, "end\n$")
    output = terminal.new_output()
    assert output is not None
    assert output.startswith("$ echo be''gin; ")
    assert "\nbegin\ny\ny\n" in output
    assert "bytes of output were not kept]\ny\n" in output
    assert output.endswith("\ny\nend\n$")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000
    terminal.send("yes | tee again\n")
    wait_for(tmp_path / "again")
    terminal.send("C-c")
    shows(terminal, "^C\n$")


def test_a_dump_of_anything_leaves_a_shell_that_works(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(bytes(range(256)) * 400 + b"\x1b]0;" + b"\x1bP" * 9)
    terminal.send("cat dump; printf '\\030\\033c'; echo d''one\n")
    shows(terminal, "done\n$")
    terminal.new_output()
    terminal.screen().encode()


def test_what_a_program_writes_is_never_typed(terminal: Terminal) -> None:
    """Real terminals answer these by typing: a file that is shown could run a command."""
    asked = "\\033[6n\\033[c\\033[5n\\033]10;?\\007\\033P+q544e\\033\\\\"
    terminal.send(f"printf '{asked}'; read -t 0 || echo n''one\n")
    assert "none\n$" in shows(terminal, "none\n$")


def test_the_end_of_the_shell_ends_the_waiting(terminal: Terminal) -> None:
    assert not terminal.wait(0)
    terminal.send("echo b''ye; exit\n")
    assert terminal.wait(DEADLINE_S)
    assert terminal.screen().endswith("\nbye\nexit")
    terminal.send("ls\n")
    assert terminal.screen().endswith("\nbye\nexit")


def test_more_than_any_program_reads_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    terminal.send("touch busy; sleep 100\n")
    wait_for(tmp_path / "busy")
    with pytest.raises(ValueError, match="send C-c"):
        terminal.send("x" * 5_000_000)
    terminal.send("C-c")
    shows(terminal, "^C\n$")


def test_a_shell_that_cannot_be_started_leaves_nothing_open() -> None:
    def start(terminal: int) -> Stop:
        raise SandboxError(f"no shell on {terminal}")

    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxError, match="no shell on"):
        Terminal(start)
    assert os.listdir("/proc/self/fd") == before


def test_a_terminal_that_was_closed_takes_nothing_more(tmp_path: Path) -> None:
    terminal = Terminal(shell(tmp_path))
    assert not terminal.closed
    terminal.close()
    terminal.close()
    assert terminal.closed
    terminal.send("touch late\n")
    assert terminal.wait(DEADLINE_S)
    assert not (tmp_path / "late").exists()
