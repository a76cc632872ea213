"""`harness show`: one trial as a readable transcript."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import click

from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.run_folder import find_run
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.report.conversation import (
    CallView,
    PartView,
    ResultView,
    SpeechView,
    TurnView,
    VendorView,
    conversation,
)
from harness.report.marks import word_of
from harness.report.notes import NoteView
from harness.report.trial_page import (
    difference_lines,
    facts,
    handed_in,
    request_changes,
    scores,
    tool_changes,
)
from harness.runner.log import RunLog
from harness.schema.results import TrialRecord
from harness.schema.trajectory import Trajectory

_INDENT = "    "
_SCORES = ("reward", "validation")
"""The others repeat what the facts say."""


@make_command("show", example="harness show last contact-card/baseline/0")
@click.argument("run")
@click.argument("trial", required=False)
def command(terminal: Terminal, run: str, trial: str | None) -> int:
    """Print one trial as a readable transcript.

    RUN is a run's folder, its id under reports/, or `last`. TRIAL is task/variant/repeat;
    a run of one trial needs none.
    """
    log = find_run(run)
    record = _only_trial(log) if trial is None else find_trial(log, trial)
    trajectory = log.trajectory(record)
    data = {
        "trial": record.model_dump(mode="json"),
        "trajectory": trajectory.model_dump(mode="json") if trajectory else None,
    }
    terminal.result(data, _lines(record, trajectory, log.run().titles.get(record.task, "")))
    return FINE


def _only_trial(log: RunLog) -> TrialRecord:
    trials = sorted(log.trials(), key=lambda one: one.outcome == "passed")
    if len(trials) == 1:
        return trials[0]
    names = [one.trial_id for one in trials]
    hint = f"there is {_few(names)}" if names else "the run holds no trial"
    raise BadInputError(f"which trial of {log.folder}? give task/variant/repeat; {hint}")


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
    hint = f"there is {_few(close)}" if close else "it holds no trial"
    raise BadInputError(f"{log.folder} has no trial {wanted!r} (task/variant/repeat); {hint}")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _lines(trial: TrialRecord, trajectory: Trajectory | None, title: str) -> Iterator[str]:
    outcome = f", {word_of(trial)}" if trial.outcome else ""
    yield f"{trial.trial_id}: {trial.termination_reason}{outcome}"
    if title:
        yield f"  {title}"
    differences = difference_lines(trial)
    if differences:
        yield from ("", *(f"  {line}" for line in differences), "")
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
    yield from (f"  Not done here: {line}" for line in trial.ignored)
    yield from _changes(trial)
    if trial.error:
        yield ""
        yield from trial.error.splitlines()
    if trajectory is None:
        yield ""
        yield f"The conversation is gone: no file {trial.trajectory} in the run's folder."
        return
    yield from _conversation(trajectory)


def _changes(trial: TrialRecord) -> Iterator[str]:
    """What is not as it is recorded."""
    for change in (*tool_changes(trial), *request_changes(trial)):
        yield f"  {change.summary}"
        yield from (f"      {line.text}" for line in change.lines)


def _conversation(trajectory: Trajectory) -> Iterator[str]:
    if trajectory.system:
        yield from _passage("System", trajectory.system)
    for turn in conversation(trajectory, None):
        for part in turn.parts:
            yield from _part(turn, part)
    output = handed_in(trajectory)
    if output is not None:
        yield from _passage("Handed in", output.text)


def _part(turn: TurnView, part: PartView) -> Iterator[str]:
    match part:
        case SpeechView():
            number = f" {turn.number}" if turn.number else ""
            purpose = f" ({turn.purpose}; {turn.usage})" if turn.purpose else ""
            yield from _passage(part.title or f"Answer{number}{purpose}", part.content.text)
        case CallView():
            yield from _call(part)
        case ResultView():
            yield from _result(part)
        case VendorView():
            yield from _passage(part.title, part.content.text)
        case NoteView():
            yield from _note(part)


def _note(note: NoteView) -> Iterator[str]:
    number = f", iteration {note.number}" if note.number else ""
    usage = f" ({note.usage})" if note.usage else ""
    yield ""
    yield f"·· {note.title}{number}{usage}"
    if note.text:
        yield from _indented(note.text)


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
    is_refused = result.kind in ("denied", "not_run")
    yield f"── {result.title}{':' if is_refused else ' of'} {result.name}"
    yield from _indented(result.content.text)


def _passage(title: str, text: str) -> Iterator[str]:
    yield ""
    yield f"── {title}"
    yield from _indented(text)


def _indented(text: str) -> Iterator[str]:
    return (f"{_INDENT}{line}".rstrip() for line in text.split("\n"))
