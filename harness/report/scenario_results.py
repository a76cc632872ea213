"""What a run of scenarios came to: those that do not hold first, then the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.report.marks import Mark, ending_label, mark
from harness.report.trial_page import difference_lines
from harness.schema.results import RunRecord, TrialRecord


@dataclass(frozen=True, slots=True)
class ScenarioView:
    """One scenario, over all its repeats."""

    name: str
    title: str
    ending: str
    """Of its first trial."""
    marks: tuple[Mark, ...]
    differences: tuple[str, ...]
    """Each once, however many repeats have it."""
    href: str
    """Leads to the trial to look at: the first that does not hold, else the first."""


@dataclass(frozen=True, slots=True)
class ScenarioResults:
    """All scenarios of a run."""

    headline: str
    differing: tuple[ScenarioView, ...]
    holding: tuple[ScenarioView, ...]
    has_repeats: bool


def is_of_scenarios(run: RunRecord) -> bool:
    """Whether a run is one of scenarios: no model of a suite of tasks is scripted."""
    return all(variant.model.provider == "scripted" for variant in run.variants)


def scenario_results(run: RunRecord, trials: Sequence[TrialRecord]) -> ScenarioResults:
    """The scenarios in the order of the trials."""
    groups: dict[str, list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        groups[trial.task].append(trial)
    differing: list[ScenarioView] = []
    holding: list[ScenarioView] = []
    for name, members in groups.items():
        holds = all(trial.outcome == "passed" for trial in members)
        (holding if holds else differing).append(_view(name, run.titles.get(name, ""), members))
    return ScenarioResults(
        headline=holding_line(len(holding), len(groups)),
        differing=tuple(differing),
        holding=tuple(holding),
        has_repeats=run.repeats > 1,
    )


def holding_line(holding: int, scenarios: int) -> str:
    """`253 of 338 scenarios hold`."""
    verb = "holds" if scenarios == 1 else "hold"
    return f"{numbers.count(holding)} of {numbers.plural(scenarios, 'scenario')} {verb}"


def _view(name: str, title: str, trials: Sequence[TrialRecord]) -> ScenarioView:
    marks = tuple(mark(trial) for trial in trials)
    failed = (one for one in marks if one.kind != "passed")
    lines = (line for trial in trials for line in difference_lines(trial))
    return ScenarioView(
        name=name,
        title=title,
        ending=ending_label(trials[0].termination_reason),
        marks=marks,
        differences=tuple(dict.fromkeys(lines)),
        href=next(failed, marks[0]).href or "",
    )
