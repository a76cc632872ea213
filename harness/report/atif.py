"""Trajectories as ATIF 1.8, the format in which agent runs are handed on to other tools."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.numbers import plural
from harness.cassette.request.canonical import shallow
from harness.report.conversation import Wording
from harness.report.exported import (
    AGENT,
    ExportedFile,
    Times,
    agent_name,
    agent_version,
    json_text,
    known,
    portable,
    price_of,
    provider_of,
    rewards_of,
    safe_name,
    settings_of,
    stable_id,
    times_of,
    variant_of,
    verdict_error,
)
from harness.report.notes import NoteView, notes_of
from harness.report.thinking import thinking
from harness.report.turn_numbers import ModelAnswer, answers_of
from harness.report.view import LoadTrajectory
from harness.schema.messages import Message, Text, ToolCall, ToolResult, Usage, VendorBlock
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.suite import Price
from harness.schema.trajectory import Event, Trajectory, UsageTotal

VERSION = "ATIF-v1.8"

Step = dict[str, Any]


def atif_files(
    run: RunRecord, trials: Iterable[TrialRecord], load: LoadTrajectory
) -> Iterator[ExportedFile]:
    """One file for each trial in which something was said."""
    for trial in trials:
        trajectory = load(trial)
        data = atif(run, trial, trajectory) if trajectory else None
        if data is not None:
            parts = (trial.task, trial.variant, str(trial.repeat))
            name = "__".join(map(safe_name, parts))
            yield ExportedFile(f"{name}.json", portable(run, json_text(data)))


def atif(run: RunRecord, trial: TrialRecord, trajectory: Trajectory) -> dict[str, Any] | None:
    """A trial's whole story; None where nothing was said, which ATIF has no form for."""
    steps = _Steps(trajectory, times_of(trial, trajectory), price_of(run, trial))
    steps.add_all()
    if not steps.steps:
        return None
    return {
        "schema_version": VERSION,
        "session_id": f"{run.run_id}/{trial.trial_id}",
        "trajectory_id": str(stable_id(run, trial.trial_id)),
        "agent": _agent(run, trial, trajectory),
        "steps": steps.steps,
        **known(notes=_notes(trajectory, steps)),
        "final_metrics": _final_metrics(trial, trajectory, len(steps.steps)),
        "extra": _extra(run, trial, trajectory, steps.pending),
    }


class _Steps:
    """The steps of one trajectory, message by message."""

    def __init__(self, trajectory: Trajectory, times: Times | None, price: Price | None) -> None:
        self.steps: list[Step] = []
        self.pending: list[NoteView] = []
        """What the loop did since the last step."""
        self.answers = answers_of(trajectory)
        self._trajectory = trajectory
        self._times = times
        self._price = price
        self._notes = notes_of(trajectory, self.answers)
        self._said = Wording(trajectory)
        self._sent_at = _sent_at(trajectory, self.answers)
        self._calls: frozenset[str] = frozenset()
        """Ids of the calls in the last step, if it is the agent's."""
        self._agent_step: Step = {}

    def add_all(self) -> None:
        """Make the steps."""
        trajectory = self._trajectory
        if trajectory.system is not None:
            self._add("system", trajectory.system, self._sent_at.get(0))
        for index, message in enumerate(trajectory.messages):
            self.pending += self._notes.get(index, ())
            if message.role == "assistant":
                self._add_agent(index, message)
            else:
                self._add_user(index, message)
        self.pending += self._notes.get(len(trajectory.messages), ())

    def _add(
        self, source: str, message: str | list[dict[str, str]], at_s: float | None, **fields: Any
    ) -> Step:
        step: Step = {"step_id": len(self.steps) + 1}
        if self._times is not None and at_s is not None:
            step["timestamp"] = self._times.at(at_s)
        step |= {"source": source, "message": message, **fields}
        if self.pending:
            step["extra"] = {**step.get("extra", {}), "before": _told(self.pending)}
            self.pending = []
        self.steps.append(step)
        return step

    def _add_agent(self, index: int, message: Message) -> None:
        answer = self.answers.get(index)
        vendor = [block for block in message.content if isinstance(block, VendorBlock)]
        fields = known(
            model_name=_only(self._trajectory.models) if answer else None,
            reasoning_content="\n\n".join(filter(None, map(thinking, vendor))),
            tool_calls=[_tool_call(call) for call in message.tool_calls],
            metrics=_metrics(answer.usage, self._price) if answer else None,
            llm_call_count=1 if answer else None,
            extra=known(
                iteration=answer.iteration if answer else None,
                purpose=answer.tag if answer and answer.tag != "main" else None,
                blocks=[block.model_dump(mode="json", exclude={"type"}) for block in vendor],
            ),
        )
        at_s = self._trajectory.events[answer.event].at_s if answer else None
        self._agent_step = self._add("agent", message.text, at_s, **fields)
        self._calls = frozenset(call.id for call in message.tool_calls)

    def _add_user(self, index: int, message: Message) -> None:
        strangers = []
        for result in message.tool_results:
            if result.call_id in self._calls:
                observation = self._agent_step.setdefault("observation", {"results": []})
                observation["results"].append(self._result(result, is_named=True))
            else:
                strangers.append(self._result(result, is_named=False))
        texts = [block.text for block in message.content if isinstance(block, Text)]
        vendor = [block for block in message.content if isinstance(block, VendorBlock)]
        if not (texts or strangers or vendor):
            return
        kinds = [self._said.speech(text, index) for text in texts]
        fields = known(
            observation={"results": strangers} if strangers else None,
            extra=known(
                kind="+".join(dict.fromkeys(kinds)),
                blocks=[block.model_dump(mode="json", exclude={"type"}) for block in vendor],
            ),
        )
        # Several texts of one turn stay apart: a joined one would be another message.
        parts = [{"type": "text", "text": text} for text in texts]
        said = parts if len(texts) > 1 else "".join(texts)
        self._add("user", said, self._sent_at.get(index), **fields)

    def _result(self, result: ToolResult, *, is_named: bool) -> dict[str, Any]:
        kind = self._said.result(result).kind
        found: dict[str, Any] = {"source_call_id": result.call_id} if is_named else {}
        found["content"] = result.content
        extra = known(
            call_id=None if is_named else result.call_id,
            tool=None if is_named else result.name,
            is_error=result.is_error or None,
            kind=None if kind == "result" else kind,
        )
        return found | known(extra=extra)


def _sent_at(trajectory: Trajectory, answers: Mapping[int, ModelAnswer]) -> dict[int, float]:
    """Index of a user's message -> when the model was asked with it, in seconds of the run."""
    found: dict[int, float] = {}
    asked: float | None = None
    for index in range(len(trajectory.messages) - 1, -1, -1):
        if trajectory.messages[index].role == "assistant":
            answer = answers.get(index)
            asked = _asked_at(trajectory.events, answer.event) if answer else None
        elif asked is not None:
            found[index] = asked
    return found


def _asked_at(events: Sequence[Event], place: int) -> float | None:
    requests = (event for event in reversed(events[:place]) if event.kind == "model_request")
    asked = next(requests, None)
    return asked.at_s if asked else None


def _tool_call(call: ToolCall) -> dict[str, Any]:
    arguments = _arguments(call.arguments)
    found: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.name}
    if arguments is None:
        return found | {"arguments": {}, "extra": {"written": call.arguments}}
    return found | {"arguments": arguments}


def _arguments(written: str) -> dict[str, Any] | None:
    """The arguments as an object; None where they are none, or one that would lose something."""
    if not written.strip():
        return {}
    try:
        value = shallow(json.loads(written, object_pairs_hook=_unique, parse_float=_finite))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("too large for JSON")
    return number


def _metrics(usage: Usage | None, price: Price | None) -> dict[str, Any] | None:
    """Tokens of one call; ATIF counts what went through a cache as part of the prompt."""
    if usage is None:
        return None
    total = UsageTotal(**usage.model_dump())
    found = known(
        prompt_tokens=prompt_tokens(total),
        completion_tokens=usage.output,
        cached_tokens=usage.cache_read,
        extra=known(cache_write_tokens=usage.cache_write),
    )
    if found and price is not None:
        found["cost_usd"] = price.cost_usd(total)
    return found or None


def prompt_tokens(usage: UsageTotal) -> int | None:
    """All tokens that a model read, with those that came from or went to a cache."""
    if usage.input is None:
        return None
    return usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)


def _agent(run: RunRecord, trial: TrialRecord, trajectory: Trajectory) -> dict[str, Any]:
    variant = variant_of(run, trial)
    offered = next((e.data.get("tools") for e in trajectory.events if "tools" in e.data), None)
    return {
        "name": agent_name(run, trial.variant) if run.imported else AGENT,
        "version": agent_version(run, trial.variant),
        **known(
            model_name=variant.model.name if variant else _only(trial.response_models),
            extra=known(
                variant=trial.variant,
                provider=provider_of(run, variant) if variant else None,
                **settings_of(run, variant),
                tools=offered,
            ),
        ),
    }


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def _final_metrics(trial: TrialRecord, trajectory: Trajectory, steps: int) -> dict[str, Any]:
    usage = trial.usage
    return {
        **known(
            total_prompt_tokens=prompt_tokens(usage),
            total_completion_tokens=usage.output,
            total_cached_tokens=usage.cache_read,
            total_cost_usd=trial.cost_usd,
        ),
        "total_steps": steps,
        "extra": known(
            total_cache_write_tokens=usage.cache_write,
            model_calls=None if "model_calls" in trial.untold else trial.model_calls,
            failed_calls=trajectory.failed_calls,
            calls_without_usage=usage.missing_calls,
            tool_calls=None if "tool_calls" in trial.untold else trial.tool_calls_made,
            iterations=None if "iterations" in trial.untold else trial.iterations,
            attempts=trial.attempts,
            duration_s=trajectory.duration_s,
        ),
    }


def _extra(
    run: RunRecord, trial: TrialRecord, trajectory: Trajectory, last: Sequence[NoteView]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "run_id": run.run_id,
        "suite": trial.suite,
        "task": trial.task,
        "variant": trial.variant,
        "repeat": trial.repeat,
        "termination_reason": trial.termination_reason.value,
        "outcome": trial.outcome,
        **known(
            rewards=rewards_of(trial),
            verifier_error=verdict_error(trial.verdict),
            error=trial.error,
            signal=trajectory.signal,
            signal_data=trajectory.signal_data,
            confirmed=trial.confirmed,
            truncated=trajectory.truncated or None,
            wrapped_up=trajectory.wrapped_up or None,
            validation_failures=list(trajectory.validation_failures),
            callback_errors=list(trajectory.callback_errors),
            after=_told(last),
        ),
    }
    if trajectory.output_seen:
        found["output"] = trajectory.output
    return found


def _notes(trajectory: Trajectory, steps: _Steps) -> str:
    """What a reader who adds up the steps must know."""
    without = trajectory.model_calls - trajectory.failed_calls - len(steps.answers)
    if without <= 0 or not trajectory.events:
        return ""
    return (
        f"{plural(without, 'answered model call')} gave no step, or which step cannot be told;"
        " final_metrics count them."
    )


def _told(notes: Iterable[NoteView]) -> list[dict[str, Any]]:
    """What the loop did, in the words of the report."""
    return [
        known(title=note.title, text=note.text, iteration=note.number, usage=note.usage)
        for note in notes
    ]
