"""The legs of the buses."""

import json
from pathlib import Path

EXPECTED = [
    ("4", "Depot", "Mill", 17),
    ("7", "Station", "Pass", 33),
    ("4", "Station", "Depot", 32),
    ("7", "Pass", "Station", 36),
    ("7", "Station", "Pass", 36),
    ("4", "Mill", "Station", 31),
]


def test_the_legs_are_those_that_the_log_tells():
    legs = json.loads(Path("/app/legs.json").read_text())
    found = [(leg["bus"], leg["from"], leg["to"], leg["minutes"]) for leg in legs]
    assert found == EXPECTED
