"""From the conversation to what the model is sent: compaction, window, and the call's options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.loop.compaction import Compactor
from harness.loop.events import EventLog
from harness.loop.transcript import Transcript
from harness.loop.window import SlidingWindow
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import Message
from harness.values import IterationPlan, ModelRequest


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What every request of a run has in common."""

    model: str
    system: str | None
    temperature: float | None


class Requests:
    """Makes the model requests of one run."""

    def __init__(
        self,
        config: LoopConfig,
        options: ModelOptions,
        transcript: Transcript,
        events: EventLog,
    ) -> None:
        self.config = config
        self.options = options
        self.transcript = transcript
        self.events = events
        self.window = SlidingWindow(config.window) if config.window else None
        self.compactor = Compactor(config.compaction) if config.compaction else None

    def request(self, plan: IterationPlan, *, tool_choice: str | None = None) -> ModelRequest:
        """One model call.

        Args:
            plan: Model, messages and tools.
            tool_choice: Instead of the one in the settings.
        """
        choice = tool_choice or self._tool_choice(plan)
        return ModelRequest(
            model=plan.model,
            system=self.options.system,
            messages=self._visible(plan.messages),
            tools=plan.tools,
            tool_choice=choice,
            max_output_tokens=self.config.max_output_tokens,
            temperature=self.options.temperature,
            cache_marks=self.config.prompt_cache,
        )

    def _tool_choice(self, plan: IterationPlan) -> str:
        """The setting, unless what it names is not offered in this iteration."""
        choice = self.config.tool_choice
        names = [spec.name for spec in plan.tools]
        is_offered = bool(names) if choice == "required" else choice in names
        return choice if is_offered else "auto"

    def compaction(self) -> ModelRequest | None:
        """The request for a summary of older turns, when one is due."""
        if self.compactor is None:
            return None
        return self.compactor.request(
            self.transcript.messages,
            model=self.options.model,
            max_output_tokens=self.config.max_output_tokens,
            temperature=self.options.temperature,
        )

    def take_summary(self, summary: str) -> None:
        """Send the summary instead of what it stands for from now on."""
        assert self.compactor is not None
        self.compactor.accept(self.transcript.messages, summary)

    def _visible(self, messages: Sequence[Message]) -> Sequence[Message]:
        shown = messages if self.compactor is None else self.compactor.apply(messages)
        shown = shown if self.window is None else self.window.visible(shown)
        if len(shown) < len(messages):
            self.events.emit("window_applied", sent=len(shown), of=len(messages))
        return shown
