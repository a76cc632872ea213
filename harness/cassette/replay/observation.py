"""A terminal's output in a turn that tells more than that, as Terminus writes it."""

from __future__ import annotations

import re

from harness.loop.text_protocols.terminus2 import STATE, WARNINGS

_WARNINGS = re.compile(rf"\A\s*{WARNINGS}\n.*?\n\n", re.DOTALL)
_QUESTION = re.compile(rf"\A\s*{STATE}\n(.*?)\n+Are you sure you want to mark the task", re.DOTALL)


def observation(text: str) -> str:
    """What the terminal showed, without what the agent itself is told beside it.

    Who replays the turn writes warnings and questions anew.
    """
    text = _WARNINGS.sub("", text)
    asked = _QUESTION.match(text)
    return text if asked is None else asked[1]
