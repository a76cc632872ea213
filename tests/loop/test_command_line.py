"""The program check against what a real bash starts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from harness.loop.command_line import CommandRefusedError, refused_program, split_command

LISTED = ("ls", "cat", "grep", "echo", "find", "test", "[", "printf", "cd")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls",
        "ls -la /workspace && cat 'a b' | grep -c x; echo done",
        "ls &\ncat a || echo 'no; rm -rf /'",
        "echo 'it is $(fine) `here` > <'",
        'echo "a; rm" | grep "x$"',
        "echo \\; rm",
        "l's' \\\n  -l",
        "echo $HOME ${HOME} \"$HOME\" '${x@P}'",
        "ls 2>/dev/null >&2 2>&1; cat < /dev/null",
        "ls &>/dev/null",
        "echo a#b",
        "find . -name '*.py' -type f",
        '[ -f a ] && test "$HOME" = x',
        "printf '%s\\n' *.py",
    ],
)
def test_a_line_of_listed_programs_passes(command: str):
    assert refused_program(command, LISTED) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("rm -rf /", "the program 'rm'"),
        ("ls; rm x", "the program 'rm'"),
        ("ls && rm x", "the program 'rm'"),
        ("ls || rm x", "the program 'rm'"),
        ("ls | rm x", "the program 'rm'"),
        ("ls |& rm x", "the program 'rm'"),
        ("ls & rm x", "the program 'rm'"),
        ("ls\nrm x", "the program 'rm'"),
        ("ls;rm x", "the program 'rm'"),
        (">/dev/null rm x", "the program 'rm'"),
        ("ls &>/dev/null rm", "the program 'rm'"),
        ("/tmp/ls", "the program '/tmp/ls'"),
        ("./ls", "the program './ls'"),
        ("$SHELL x", "the program '$SHELL'"),
        ("{ls,rm}", "the program '{ls,rm}'"),
        ("! rm", "the program '!'"),
        ("if ls", "the program 'if'"),
        ("{ rm; }", "the program '{'"),
        ("echo $(rm)", "subshells"),
        ('echo "$(rm)"', "subshells"),
        ("echo `rm`", "subshells"),
        ('echo "`rm`"', "subshells"),
        ("(rm)", "subshells"),
        ("cat <(rm)", "redirections"),
        ("ls >(rm)", "redirections"),
        ("echo $((1))", "subshells"),
        ("echo $'\\x72m'", "subshells"),
        ("echo ${x@P}", "computed values"),
        ('echo "$\\\n(rm)"', "computed values"),
        ("echo $[1]", "computed values"),
        ("echo rm; echo $_", "computed values"),
        ("ls() { rm; }", "subshells and functions"),
        ("echo x > /etc/passwd", "redirections"),
        ("echo x >> a", "redirections"),
        ("cat << E\nrm\nE", "redirections"),
        ("cat <<< x", "redirections"),
        ("ls >/dev/null2", "redirections"),
        ("PATH=/tmp ls", "setting a variable"),
        ("a[0]+=x ls", "setting a variable"),
        ("ls # it's\nrm x #'", "comments"),
        ("ls 'a", "a quote is not closed"),
        ('ls "a', "a quote is not closed"),
        ("ls \\", "it ends in the middle"),
        ("env rm", "'env' can start any program"),
        ("sudo rm", "'sudo' can start any program"),
        ("xargs rm", "'xargs' can start any program"),
        ("bash -c rm", "'bash' can start any program"),
        ("/bin/sh -c rm", "'/bin/sh' can start any program"),
        ("eval rm", "'eval' can start any program"),
        ("find . -exec rm {} \\;", "find -exec is not allowed"),
        ("find . -ok''dir rm {} \\;", "find -okdir is not allowed"),
        ("find . {-exec,rm}", "must be in quotes"),
        ("find . -exe?", "must be in quotes"),
        ("test -v 'x[$(rm)]'", "test -v is not allowed"),
        ("printf -v x y", "printf -v is not allowed"),
    ],
)
def test_what_is_not_listed_or_cannot_be_told_is_refused(command: str, why: str):
    refusal = refused_program(command, LISTED)
    assert refusal is not None
    assert why in refusal


@pytest.mark.parametrize("program", ["env", "bash", "sudo", "xargs", "nice", "time", "exec"])
def test_a_program_that_starts_others_is_refused_though_listed(program: str):
    assert refused_program(f"{program} ls", (program, "ls")) is not None


PIECES = (
    "good ", "good\n", "evil ", "evil", "evil\n", ";", "&", "|", "\n", "'", '"', "\\", "$", "(",
    ")", "{", "}", "`", "<", ">", "#", " #", "!", "=", "x", "</dev/null", ">/dev/null ", "2>&1 ",
    "[", "]", ",", "*", "~", "-", "$(", "${", "\\\n", "\t", "\r", "$'", "'evil'", '"evil"', "$_",
    "\x0b", "\xa0", "$x", "${x}", "&>/dev/null", "&&", "||", "$\\\n", "<\\\n", "E\n",
)  # fmt: skip


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs `good` and `evil`; evil leaves a file."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "good").write_text("#!/bin/sh\n")
    (folder / "evil").write_text(f"#!/bin/sh\n: > {folder}/started\n")
    for name in ("good", "evil"):
        (folder / name).chmod(0o755)
    return folder


def lines_that_pass(count: int) -> Iterator[str]:
    """Random lines that name `evil` and are let through."""
    random = Random(3)
    while count:
        pieces = random.choices(PIECES, k=random.randint(1, 12))
        line = "".join(random.choice([[], ["good "]]) + pieces)
        if "evil" in line and refused_program(line, ("good",)) is None:
            count -= 1
            yield line


def test_no_line_that_passes_starts_another_program(started: Path, tmp_path: Path):
    for line in lines_that_pass(200):
        _run(line, started, tmp_path)
        assert not (started / "started").exists(), line


def _run(line: str, programs: Path, folder: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    # Output is no matter; a line that waits for input gets none.
    subprocess.run(
        [bash, "-c", line],
        cwd=folder,
        env={"PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_words_come_without_quotes_and_know_what_expands():
    (words,) = split_command("""a 'b c'"d"\\e *.py "*" """)
    assert [(word.text, word.expands) for word in words] == [
        ("a", False),
        ("b cde", False),
        ("*.py", True),
        ("*", False),
    ]


def test_a_null_character_is_refused():
    with pytest.raises(CommandRefusedError):
        split_command("ls \0")
