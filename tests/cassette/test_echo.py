"""Output of a terminal, without prompts and what is typed at them."""

from __future__ import annotations

import pytest

from harness.cassette.replay.echo import outputs

HEREDOC = "cat > a.py << 'EOF'\nimport sys\n\nprint(sys.argv)\nEOF\n"
LONG = f"echo {'word ' * 40}> long.txt\n"


@pytest.mark.parametrize(
    ("recorded", "live", "typed"),
    [
        ("2 a.txt", "bash-5.2# wc -l a.txt\n2 a.txt\nbash-5.2#", "wc -l a.txt\n"),
        ("root@5f0:/app# wc a\n2 a\nroot@5f0:/app#", "bash-5.2# wc a\n2 a\nbash-5.2#", "wc a\n"),
        ("3", "(venv) bash-5.2# printf 3\n3bash-5.2#", "printf 3\n"),
        (
            "Current Terminal Screen:\n",
            "New Terminal Output:\nbash-5.2# cat > a.py << 'EOF'\n> import sys\n>\n"
            "> print(sys.argv)\n> EOF\nbash-5.2#",
            HEREDOC,
        ),
        ("3", "bash-5.2# python3\n>>> 1 + 2\n3\n>>>", "python3\n1 + 2\n"),
        ("done", f"bash-5.2# {LONG[:150]}\n{LONG[150:]}done\nbash-5.2#", LONG),
        ("done", "bash-5.2# sleep 9; echo done\nls\ndone\n", "sleep 9; echo done\nls\n"),
        (
            "",
            "bash-5.2# cat > a.py << 'EOF'\n> impo\n[9 bytes in between are left out]\n"
            "(sys.argv)\n> EOF\n",
            HEREDOC,
        ),
    ],
)
def test_the_same_output_beside_prompts_and_echo(recorded: str, live: str, typed: str):
    before, now = outputs(recorded, live, [typed])
    assert before == now


@pytest.mark.parametrize(
    ("recorded", "live", "typed", "expected"),
    [
        ("3", "bash-5.2# cat n\n2\nbash-5.2#", "cat n\n", ("3", "2")),
        # Recorded without echo: the line is the file's.
        ("import sys", "bash-5.2# cat a.py\n", f"{HEREDOC}cat a.py\n", ("import sys", "")),
        ("> quoted", "bash-5.2# cat mail\n> other", "cat mail\n", ("> quoted", "> other")),
        ("5 # five", "bash-5.2# cat n\n6 # six", "cat n\n", ("5 # five", "6 # six")),
    ],
)
def test_other_output_is_told(recorded: str, live: str, typed: str, expected: tuple[str, str]):
    assert outputs(recorded, live, [typed]) == expected
