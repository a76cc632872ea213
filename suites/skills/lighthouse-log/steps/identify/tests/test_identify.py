"""The second step: which light it was."""

from pathlib import Path

from lights import LIGHTS


def test_the_light_that_was_seen():
    name = Path("/workspace/seen.txt").read_text().strip()
    assert LIGHTS[name] == ("Fl", 2, "white", 10)
