"""The messages that were drummed."""

from pathlib import Path

import pytest

TEXTS = {
    "dawn": "snow on the high pass",
    "noon": "sheep are safe in the valley",
    "dusk": "DAMAGED",
    "night": "all is quiet",
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_message_says(name):
    assert Path("/output", f"{name}.txt").read_text().strip() == TEXTS[name]


def test_there_is_a_file_for_each_message_and_no_other():
    assert sorted(path.stem for path in Path("/output").glob("*.txt")) == sorted(TEXTS)
