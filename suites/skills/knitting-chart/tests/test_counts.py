"""The stitch counts of the shawl."""

import csv
from pathlib import Path

import pytest

EXPECTED = [(1, 8, 12), (2, 12, 12), (3, 12, 17), (4, 17, 17), (5, 17, 17), (6, 17, "-")]


def rows():
    with Path("/data/counts.csv").open(newline="") as file:
        return list(csv.reader(file))


def test_the_head_is_as_asked():
    assert rows()[0] == ["row", "before", "after"]


def test_it_stops_at_the_row_that_does_not_fit():
    assert len(rows()) == 1 + len(EXPECTED)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda row: f"row {row[0]}")
def test_a_row(expected):
    assert [str(value) for value in expected] in rows()
