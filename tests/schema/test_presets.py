from __future__ import annotations

from typing import get_args

import pytest

from harness.schema.loop_config import LoopConfig
from harness.schema.presets import PRESETS, PresetName


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_loop_configuration(name: PresetName):
    loop = LoopConfig.model_validate(PRESETS[name])
    assert loop.model_dump(mode="json", exclude_unset=True) == PRESETS[name]


def test_the_default_preset_changes_nothing_and_every_name_has_one():
    assert PRESETS["default"] == {}
    assert tuple(PRESETS) == get_args(PresetName)
