"""The shopping list of the camp."""

import json
from pathlib import Path

import pytest

EXPECTED = {
    "flour": 4500,
    "lentils": 3750,
    "milk": 16000,
    "oats": 4500,
    "oil": 713,
    "salt": 39,
    "water": 13500,
}


@pytest.fixture
def shopping():
    return json.loads(Path("/workspace/shopping.json").read_text())


def test_nothing_is_missing_and_nothing_is_too_much(shopping):
    assert sorted(shopping) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_amount_is_right(shopping, name):
    assert shopping[name] == EXPECTED[name]
