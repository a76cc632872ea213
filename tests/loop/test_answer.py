"""From a final text to an output."""

from __future__ import annotations

import pytest

from harness.loop.answer import output_from_text
from harness.schema.record import Json


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"a": 1}', {"a": 1}),
        (" [1, 2]\n", [1, 2]),
        ("{}", {}),
        ("[]", []),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}```', {"a": 1}),
        ('Here:\n```python\nx = 1\n```\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ("", {"response": ""}),
        ("done", {"response": "done"}),
        ("42", {"response": "42"}),
        ("null", {"response": "null"}),
        ('"quoted"', {"response": '"quoted"'}),
        ('so {"a": 1}', {"response": 'so {"a": 1}'}),
        ('{"a": NaN}', {"response": '{"a": NaN}'}),
        ('{"a": 1e999}', {"response": '{"a": 1e999}'}),
        ('{"a": "\\ud800"}', {"response": '{"a": "\\ud800"}'}),
        ("[" * 100_000, {"response": "[" * 100_000}),
        ("[" * 99 + "]" * 99, None),
        ("[" * 102 + "]" * 102, {"response": "[" * 102 + "]" * 102}),
    ],
)
def test_json_becomes_the_output_and_other_text_a_response(text: str, wanted: Json) -> None:
    found = output_from_text(text)
    if wanted is None:
        assert isinstance(found, list)
    else:
        assert found == wanted
