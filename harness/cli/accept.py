"""`harness accept`: record again just what a suite misses."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from harness.analysis import numbers
from harness.analysis.exact import UnscoredTrial
from harness.analysis.misses import MissGroup
from harness.cassette.care.prune import plan_pruning
from harness.cli import FINE, UNDECIDED
from harness.cli.execution import (
    Answering,
    Planned,
    Selection,
    accept_command,
    check_cassettes,
    check_keys,
    execute,
    plan_suite,
    say_first,
    suite_command,
)
from harness.cli.hosting import machine_options
from harness.cli.options import environment, make_command, selection
from harness.cli.run_folder import write_report
from harness.cli.summary import RunSummary, summarise, summary_lines
from harness.cli.terminal import Terminal
from harness.cli.unscored import unscored_lines
from harness.errors import BadInputError
from harness.runner.trial import cassette_file
from harness.schema.loop_config import TerminationReason


@make_command("accept", example="harness accept basics --task 'contact-*'")
@click.argument("suite")
@selection
@machine_options
@click.option("--yes", is_flag=True, help="Record without asking.")
@click.option("--allow-live", is_flag=True, help="Allow recording where CI is set.")
def command(terminal: Terminal, suite: str, yes: bool, allow_live: bool, **options: Any) -> int:
    """Record again just what a suite misses, after a change that was meant.

    The suite is replayed first. The misses are shown by cause and, after asking, the trials that
    miss are recorded: what their cassettes hold is served, the rest is asked of the live model.
    Trials that replay stay as they are. Then the suite is replayed into a new run.
    """
    if environment().get("CI") and not allow_live:
        raise BadInputError("accept calls models, and CI is set; add --allow-live")
    chosen = Selection(**options)
    if chosen.out is not None and chosen.out.exists():
        raise BadInputError(
            f"{chosen.out}: this folder is there already; choose another with --out"
        )
    planned = plan_suite(suite, chosen)
    if not planned.recordable:
        raise BadInputError(f"{suite}: scenarios ask no model, so there is nothing to record")
    say_first(planned, terminal)
    with tempfile.TemporaryDirectory(prefix="harness-accept-") as folder:
        before = summarise(execute(_into(planned, Path(folder, "replayed")), terminal), "")
        missing = _missing(suite, planned, before.misses)
        if not missing.cells:
            return _nothing(terminal, planned, before)
        check_keys(missing)
        check_cassettes(missing)
        for line in unscored_lines(before.unscored, before.misses, trials=before.trials):
            terminal.say(line)
        if not yes and not _agreed(terminal, missing):
            terminal.say("Nothing was recorded.")
            return UNDECIDED
        log = execute(_into(missing, Path(folder, "recorded")), terminal)
        recorded = summarise(log, "")
        calls = sum(trial.recorded for trial in log.trials())
    log = execute(planned, terminal)
    after = summarise(log, str(write_report(log)))
    result = _Accepted(
        before.misses,
        missing,
        calls,
        (*recorded.unscored, *recorded.skipped),
        after,
        _unused(missing),
    )
    terminal.result(result.data(), result.lines())
    if result.failed:
        # That they are missed again only follows from it.
        failed = recorded.model_copy(update={"unscored": result.failed, "misses": ()})
        terminal.error("\n".join(_explained(planned, failed)))
    elif after.unscored:
        terminal.error("\n".join(_explained(planned, after)))
    return UNDECIDED if after.unscored else FINE


@dataclass(frozen=True, slots=True)
class _Accepted:
    misses: Sequence[MissGroup]
    missing: Planned
    calls: int
    """Model calls that were recorded."""
    unscored: Sequence[UnscoredTrial]
    """While recording."""
    after: RunSummary
    unused: int
    """Lines of the cassettes that no finished trial uses any more."""

    @property
    def failed(self) -> tuple[UnscoredTrial, ...]:
        """Trials that could not be recorded: why is known to the recording alone."""
        missed = TerminationReason.REPLAY_MISS
        return tuple(one for one in self.unscored if one.termination_reason != missed)

    def data(self) -> dict[str, object]:
        return {
            "misses": [group.model_dump(mode="json") for group in self.misses],
            "recorded_trials": [spec.trial_id for spec in self.missing.specs],
            "recorded_calls": self.calls,
            "unused_lines": self.unused,
            "run": self.after.model_dump(mode="json"),
        }

    def lines(self) -> Iterator[str]:
        yield from summary_lines(self.after)
        yield ""
        calls = numbers.plural(self.calls, "model call")
        yield f"Recorded {calls} in {numbers.plural(len(self.missing.specs), 'trial')}."
        if self.unused:
            lines = numbers.plural(self.unused, "recorded line")
            verb = "is" if self.unused == 1 else "are"
            yield f"{lines} {verb} used by no trial any more: harness cassette prune"
        yield f"Report: {self.after.report}"


def _unused(planned: Planned) -> int:
    """Lines in the cassettes of these cells that no finished trial uses."""
    files = [planned.settings.cassettes / cassette_file(cell) for cell in planned.cells]
    prunings = [plan_pruning(file) for file in files if file.exists()]
    return sum(len(one.lines) for found in prunings if found for one in found.removals)


def _into(planned: Planned, folder: Path) -> Planned:
    return replace(planned, selection=replace(planned.selection, out=folder))


def _missing(suite: str, planned: Planned, misses: Sequence[MissGroup]) -> Planned:
    """The trials that miss, to be recorded."""
    wanted = {trial for group in misses for trial in group.trials}
    cells = []
    for cell in planned.cells:
        specs = tuple(spec for spec in cell.specs if spec.trial_id in wanted)
        if specs:
            cells.append(replace(cell, specs=specs))
    answering = Answering(record_mode="new_episodes")
    settings = replace(planned.settings, record_mode=answering.record_mode)
    return replace(planned, cells=tuple(cells), settings=settings, answering=answering)


def _nothing(terminal: Terminal, planned: Planned, before: RunSummary) -> int:
    """Say that no trial misses anything; others may have failed."""
    said = f"Nothing to record: {numbers.plural(before.trials, 'trial')} without a miss."
    terminal.result({"misses": [], "recorded_trials": [], "recorded_calls": 0}, [said])
    if before.unscored:
        terminal.error("\n".join(_explained(planned, before)))
        return UNDECIDED
    return FINE


def _agreed(terminal: Terminal, missing: Planned) -> bool:
    """Say what recording asks, and let the user decide.

    Raises:
        BadInputError: nobody is there to be asked.
    """
    trials = numbers.plural(len(missing.specs), "trial")
    if terminal.json or not sys.stdin.isatty():
        settings = missing.settings
        explain = suite_command(
            ("check", "--explain"), settings.suite_argument, missing.selection, settings.secrets
        )
        raise BadInputError(
            f"{trials} would be recorded from live models; give --yes to do it, or see every cause "
            f"in full: {explain}"
        )
    models = sorted({f"{spec.model.name} ({spec.model.provider})" for spec in missing.specs})
    question = f"Record {trials} again, from {', '.join(models)}?"
    return click.confirm(question, err=True)


def _explained(planned: Planned, summary: RunSummary) -> list[str]:
    settings = planned.settings
    return unscored_lines(
        summary.unscored,
        summary.misses,
        trials=summary.trials,
        record=accept_command(settings.suite_argument, planned.selection, settings.secrets),
    )
