"""The parcels of the seed exchange, held against what the letters say."""

import json
from collections import Counter
from pathlib import Path

import pytest

OFFERS = {
    "ada": {"tomato": 3, "pea": 1},
    "ben": {"basil": 1, "dill": 2},
    "cleo": {"basil": 2, "pea": 1},
    "dov": {"dill": 1},
}
WANTS = {
    "ada": {"basil": 2},
    "ben": {"tomato": 2, "pea": 2},
    "cleo": {"tomato": 2, "dill": 1},
    "dov": {"dill": 2, "pea": 1},
}
MOST = {"basil": 2, "dill": 3, "pea": 2, "tomato": 3}


@pytest.fixture
def parcels():
    return json.loads(Path("/app/parcels.json").read_text())


def bags(parcels, side):
    sums = Counter()
    for parcel in parcels:
        assert parcel["bags"] > 0
        sums[parcel[side], parcel["seed"]] += parcel["bags"]
    return sums


def test_nobody_sends_more_than_they_offer(parcels):
    for (name, seed), count in bags(parcels, "from").items():
        assert count <= OFFERS[name].get(seed, 0)


def test_nobody_gets_more_than_they_want(parcels):
    for (name, seed), count in bags(parcels, "to").items():
        assert count <= WANTS[name].get(seed, 0)


def test_nobody_sends_to_themselves(parcels):
    assert all(parcel["from"] != parcel["to"] for parcel in parcels)


def test_no_entry_is_there_twice(parcels):
    keys = [(parcel["from"], parcel["to"], parcel["seed"]) for parcel in parcels]
    assert len(set(keys)) == len(keys)


def test_as_much_as_possible_changes_hands(parcels):
    moved = Counter()
    for parcel in parcels:
        moved[parcel["seed"]] += parcel["bags"]
    assert moved == MOST


def test_only_what_the_agent_handed_over_is_here():
    assert not Path("/app/letters").exists()
