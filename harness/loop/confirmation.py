"""Asking whether a text answer is really the end of the task."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.schema.loop_config import Confirm

STRUCTURED_PROMPT = (
    "Is the task complete, and did you check the result? If it is, answer with "
    "`COMPLETED: ` and your final answer. If anything is missing, answer with "
    "`CONTINUE: ` and what you do next."
)
SECOND_TEXT_PROMPT = (
    "Is the task complete, and did you check the result? If anything is missing, go on with the "
    "tools. If it is complete, give your final answer again."
)
COMPLETION_PROMPT = (
    "Are you sure that the task is complete? It will be checked as it is now, and nothing can be "
    "changed afterwards. If you are sure, say once more that it is complete."
)
GO_ON = "Continue."

_WORD = re.compile(r"\s*(completed|continue)\b\s*:?\s*(.*)\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Accept:
    """Take this text as the answer."""

    text: str
    confirmed: bool | None


@dataclass(frozen=True, slots=True)
class Ask:
    """Say this to the model, and let it go on."""

    text: str
    is_question: bool


class Confirmation:
    """The state of the question over one run."""

    def __init__(self, config: Confirm) -> None:
        self.config = config
        self.pending = False
        self.prompts_in_row = 0

    def rearm(self) -> None:
        """Forget the question, where questions are not counted: the model went on working."""
        if self.config.mode == "counted":
            return
        self.pending = False
        self.prompts_in_row = 0

    def judge(self, text: str) -> Accept | Ask:
        """Decide about a text-only turn that would otherwise be the answer."""
        if not self.config.enabled:
            return Accept(text, confirmed=None)
        if self.pending and self.config.mode != "counted":
            decision = self._judge_answer(text)
            if decision is not None:
                return decision
        return self._ask(text)

    def judge_completion(self) -> Ask | None:
        """The question to a call that says the task is complete, or None the second time.

        Where questions are counted that is the second time in the run, else in a row.
        """
        if not self.config.enabled or self.pending:
            return None
        self.pending = True
        return Ask(self.config.prompt or COMPLETION_PROMPT, is_question=True)

    def _judge_answer(self, text: str) -> Accept | Ask | None:
        if self.config.mode == "second_text":
            return Accept(text, confirmed=True)
        match = _WORD.match(text)
        if match is None:
            return None
        word, rest = match.groups()
        if word.upper() == "COMPLETED":
            return Accept(rest.strip(), confirmed=True)
        self.rearm()
        return Ask(GO_ON, is_question=False)

    def _ask(self, text: str) -> Accept | Ask:
        if self.prompts_in_row >= self.config.max_prompts:
            return Accept(text, confirmed=None if self.config.mode == "counted" else False)
        self.pending = True
        self.prompts_in_row += 1
        built_in = STRUCTURED_PROMPT if self.config.mode == "structured" else SECOND_TEXT_PROMPT
        return Ask(self.config.prompt or built_in, is_question=True)
