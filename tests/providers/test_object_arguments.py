"""Arguments become an object exactly where they can be sent as one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from harness.providers.object_arguments import INVALID_ARGUMENTS, as_object, as_object_text
from tests.providers.random_transcripts import arguments

ODD = [
    "",
    "null",
    "\ufeff{}",
    ' {"a": 1.0}\n',
    '{"a": 1}x',
    '{"a": -Infinity}',
    '{"a": 1e999}',
    '{"a": "\ud800"}',
    '{"\\ud800": 1}',
    '{"a": "\\\\ud800"}',
    '{"a": "\\ud83d\\ude00"}',
    '{"a": ' + "[" * 90 + "]" * 90 + "}",
    '{"a": ' + "[" * 2000 + "]" * 2000 + "}",
    '{"a": ' + "9" * 5000 + "}",
]


def plainly(text: str) -> dict[str, Any]:
    """The same, without the short cuts."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return {INVALID_ARGUMENTS: text}
    return value if isinstance(value, dict) else {INVALID_ARGUMENTS: text}


@pytest.mark.parametrize("text", ODD)
def test_odd_arguments(text: str) -> None:
    assert repr(as_object(text)) == repr(plainly(text))


@given(arguments)
def test_any_arguments(text: str) -> None:
    assert repr(as_object(text)) == repr(plainly(text))
    sent = as_object_text(text)
    assert sent == text if not text or plainly(text) != {INVALID_ARGUMENTS: text} else sent != text
