"""The last step: the line in the log."""

from pathlib import Path


def test_one_line_was_added_and_the_others_are_as_they_were():
    assert Path("/workspace/LOG.md").read_text().splitlines() == [
        "# Log of the watch",
        "01:55 Old Mole, Oc R 6s",
        "02:10 Harbour North, Iso G 4s",
        "02:40 Anvil Point, Fl(2) W 10s",
    ]
