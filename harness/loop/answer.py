"""From a final text to an output."""

from __future__ import annotations

import re

from harness.loop.written_json import read_json
from harness.schema.record import Json

FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)


def output_from_text(text: str) -> Json:
    """JSON in the text, bare or fenced, is the output; other text becomes `{"response": text}`."""
    candidates = [text, *FENCED.findall(text)]
    for candidate in candidates:
        try:
            parsed = read_json(candidate)
        except ValueError:
            continue
        if isinstance(parsed, dict | list):
            return parsed
    return {"response": text}
