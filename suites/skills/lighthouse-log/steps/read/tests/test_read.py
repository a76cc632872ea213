"""The first step: the list as JSON."""

import json
from pathlib import Path

from lights import LIGHTS


def test_every_light_is_read():
    found = json.loads(Path("/workspace/lights.json").read_text())
    keys = ("kind", "group", "colour", "period")
    assert {name: tuple(light[key] for key in keys) for name, light in found.items()} == LIGHTS
