"""What a turn without tool calls means: the answer, a reason to ask back, or the end."""

from __future__ import annotations

from dataclasses import dataclass

from harness.loop.confirmation import Accept, Ask, Confirmation
from harness.loop.endings import Ending
from harness.loop.events import EventLog
from harness.protocols import OutputSpec
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.trajectory import CallTag

NUDGE_OUTPUT = "You have not handed in a result. Hand it in by calling the tool `{name}`."
NUDGE_SUBMIT = "You have not submitted your draft. Call `submit`, or `{name}` with a better draft."
NUDGE_TOOL = "You have not finished. Go on with a tool."


@dataclass(frozen=True, slots=True)
class AskBack:
    """Say this to the model; the answer is a call of the given kind."""

    text: str
    tag: CallTag


class TextCompletion:
    """Judges the text-only turns of one run."""

    def __init__(
        self,
        config: LoopConfig,
        output: OutputSpec | None,
        events: EventLog,
        *,
        has_terminal_tools: bool,
    ) -> None:
        self.config = config
        self.output = output
        self.events = events
        self.confirmation = Confirmation(config.confirm)
        self.nudges_in_row = 0
        expects_call = output is not None or has_terminal_tools
        self.policy = config.text_only or ("nudge" if expects_call else "accept")

    def start_over(self) -> None:
        """A turn with calls, or a new attempt, ends a row of reminders and re-arms the question."""
        self.nudges_in_row = 0
        self.confirmation.rearm()

    def judge(self, text: str, *, has_draft: bool) -> Accept | AskBack | Ending:
        """Decide about one text-only turn.

        Args:
            text: What the model said.
            has_draft: Whether an output was handed in for reflection and not submitted yet.
        """
        if self.policy == "accept" and not has_draft:
            decision = self.confirmation.judge(text)
            return self._ask_back(decision) if isinstance(decision, Ask) else decision
        if self.policy == "nudge" and self.nudges_in_row < self.config.nudge_max:
            return self._nudge(has_draft=has_draft)
        if has_draft:
            return Ending(TerminationReason.NO_SUBMIT, "a draft was made but never submitted")
        return Ending(TerminationReason.NO_OUTPUT, "the model answered in text only")

    def question_to_completion(self) -> str | None:
        """What to answer a call that says the task is complete; None takes it."""
        ask = self.confirmation.judge_completion()
        if ask is None:
            return None
        self.events.emit("confirmation_asked", prompt=ask.text)
        return ask.text

    def _ask_back(self, ask: Ask) -> AskBack:
        if not ask.is_question:
            return AskBack(ask.text, "main")
        self.events.emit("confirmation_asked", prompt=ask.text)
        return AskBack(ask.text, "confirm")

    def _nudge(self, *, has_draft: bool) -> AskBack:
        self.nudges_in_row += 1
        wording = NUDGE_TOOL
        if self.output is not None:
            template = NUDGE_SUBMIT if has_draft else NUDGE_OUTPUT
            wording = template.format(name=self.output.tool.name)
        self.events.emit("nudged", text=wording)
        return AskBack(wording, "nudge")
