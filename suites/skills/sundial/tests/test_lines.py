"""The hour lines of the sundial, to a tenth of a degree."""

import csv
from pathlib import Path

import pytest

ANGLES = {
    "7": -71.3,
    "8": -53.9,
    "9": -38.3,
    "10": -24.5,
    "11": -12.0,
    "12": 0.0,
    "13": 12.0,
    "14": 24.5,
    "15": 38.3,
    "16": 53.9,
    "17": 71.3,
}


@pytest.fixture
def angles():
    with Path("/home/mason/lines.csv").open(newline="") as file:
        return {row["hour"]: float(row["angle"]) for row in csv.DictReader(file)}


def test_only_hours_with_sun_have_a_line(angles):
    assert list(angles) == list(ANGLES)


def test_the_angles(angles):
    for hour, angle in ANGLES.items():
        assert angles[hour] == pytest.approx(angle, abs=0.11)
