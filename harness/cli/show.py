"""`harness show`: one trial as a readable transcript."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import click

from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.run_folder import find_run
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.report.conversation import CallView, ResultView, SpeechView, VendorView, conversation
from harness.report.trial_page import facts, handed_in, scores
from harness.runner.log import RunLog
from harness.schema.results import TrialRecord
from harness.schema.trajectory import Trajectory

_INDENT = "    "
_SCORES = ("reward", "scenario", "validation")
"""The others repeat what the facts say."""


@make_command("show", example="harness show last contact-card/baseline/0")
@click.argument("run")
@click.argument("trial")
def command(terminal: Terminal, run: str, trial: str) -> int:
    """Print one trial as a readable transcript.

    RUN is a run's folder, its id under reports/, or `last`. TRIAL is task/variant/repeat.
    """
    log = find_run(run)
    record = find_trial(log, trial)
    trajectory = log.trajectory(record)
    data = {
        "trial": record.model_dump(mode="json"),
        "trajectory": trajectory.model_dump(mode="json") if trajectory else None,
    }
    terminal.result(data, _lines(record, trajectory))
    return FINE


def find_trial(log: RunLog, wanted: str) -> TrialRecord:
    """A trial by its id.

    Raises:
        BadInputError: the run does not hold it; the text names what comes close.
    """
    trials = {trial.trial_id: trial for trial in log.trials()}
    if wanted in trials:
        return trials[wanted]
    close = [name for name in trials if wanted in name]
    close = close or difflib.get_close_matches(wanted, trials, n=5, cutoff=0.5) or list(trials)
    shown = ", ".join(close[:5]) + (", ..." if len(close) > 5 else "")
    hint = f"there is {shown}" if shown else "it holds no trial"
    raise BadInputError(f"{log.folder} has no trial {wanted!r} (task/variant/repeat); {hint}")


def _lines(trial: TrialRecord, trajectory: Trajectory | None) -> Iterator[str]:
    outcome = f", {trial.outcome}" if trial.outcome else ""
    yield f"{trial.trial_id}: {trial.termination_reason}{outcome}"
    for fact in facts(trial, trajectory):
        yield f"  {fact.label}: {fact.value}"
    for score in scores(trial):
        if score.label in _SCORES:
            first, *more = score.explanation.splitlines() or [""]
            if more:
                yield f"  {score.label.capitalize()}: {score.value}"
                yield from (f"    {line}" for line in (first, *more))
            else:
                why = f" ({first})" if first else ""
                yield f"  {score.label.capitalize()}: {score.value}{why}"
    if trial.error:
        yield ""
        yield from trial.error.splitlines()
    if trajectory is None:
        yield ""
        yield f"The conversation is gone: no file {trial.trajectory} in the run's folder."
        return
    yield from _conversation(trajectory)


def _conversation(trajectory: Trajectory) -> Iterator[str]:
    if trajectory.system:
        yield from _passage("System", trajectory.system)
    for turn in conversation(trajectory, None):
        for part in turn.parts:
            match part:
                case SpeechView():
                    number = f" {turn.number}" if turn.number else ""
                    yield from _passage(part.title or f"Answer{number}", part.content.text)
                case CallView():
                    yield from _call(part)
                case ResultView():
                    yield from _result(part)
                case VendorView():
                    yield from _passage(part.title, part.content.text)
    output = handed_in(trajectory)
    if output is not None:
        yield from _passage("Handed in", output.text)


def _call(call: CallView) -> Iterator[str]:
    yield ""
    yield f"── Call {call.name}"
    if call.raw is not None:
        yield from _indented(call.raw.text)
    for argument in call.arguments:
        lines = argument.value.text.split("\n")
        if len(lines) == 1:
            yield f"{_INDENT}{argument.name}: {lines[0]}"
        else:
            yield f"{_INDENT}{argument.name}:"
            yield from (f"{_INDENT}  {line}" for line in lines)
    if call.result is not None:
        yield from _result(call.result)


def _result(result: ResultView) -> Iterator[str]:
    yield f"── {result.title} of {result.name}"
    yield from _indented(result.content.text)


def _passage(title: str, text: str) -> Iterator[str]:
    yield ""
    yield f"── {title}"
    yield from _indented(text)


def _indented(text: str) -> Iterator[str]:
    return (f"{_INDENT}{line}".rstrip() for line in text.split("\n"))
