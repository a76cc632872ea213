"""The rows of the choir: any order in which all rules hold is right."""

from pathlib import Path

import pytest

CM = {
    "Alma": 158,
    "Bo": 186,
    "Cora": 167,
    "Dina": 163,
    "Egon": 179,
    "Finn": 183,
    "Gita": 171,
    "Hugo": 174,
    "Ida": 169,
}


@pytest.fixture
def rows():
    return [line.split() for line in Path("rows.txt").read_text().splitlines()]


@pytest.fixture
def place(rows):
    return {name: (r, p) for r, row in enumerate(rows) for p, name in enumerate(row)}


def test_everybody_stands_somewhere_once(rows):
    assert [len(row) for row in rows] == [3, 3, 3]
    assert sorted(name for row in rows for name in row) == sorted(CM)


def test_nobody_stands_behind_a_taller_singer(rows):
    for front, back in zip(rows[:-1], rows[1:], strict=True):
        assert all(CM[a] < CM[b] for a, b in zip(front, back, strict=True))


def test_the_wishes_are_met(place):
    row = {name: where[0] for name, where in place.items()}
    assert row["Bo"] == row["Finn"] == 2
    assert place["Dina"] == (row["Alma"], place["Alma"][1] + 1)
    assert row["Hugo"] != row["Egon"]
    assert row["Ida"] > 0
    assert place["Cora"][1] == 2
    assert place["Gita"] == (1, place["Bo"][1])
