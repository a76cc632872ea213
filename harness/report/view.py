"""The view model: everything the page says, as plain data, from the run log alone."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.analysis.compare import compare_variants
from harness.errors import BadInputError
from harness.report import trial_page
from harness.report.comparisons import ComparisonView, comparison_views
from harness.report.conversation import conversation, shared_messages
from harness.report.glossary import Term, glossary
from harness.report.marks import SYMBOLS, WORDS, Mark, anchor, ending_label, mark, word_of
from harness.report.results_table import ResultsTable, results_table
from harness.report.run_facts import Notice, VariantView, notices, run_facts, variant_views
from harness.report.scenario_results import ScenarioResults, is_of_scenarios, scenario_results
from harness.report.trial_page import Fact, SystemPrompt, TrialPage
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.trajectory import Trajectory

LoadTrajectory = Callable[[TrialRecord], Trajectory | None]
"""Gives a trial's trajectory, or None where its file is gone."""

_REPEATS_NEAR = 10
"""To how many repeats before and after its own a trial's page has links."""


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page."""

    suite: str
    description: str
    run_id: str
    baseline: str | None
    facts: tuple[Fact, ...]
    variants: tuple[VariantView, ...]
    notices: tuple[Notice, ...]
    comparisons: tuple[ComparisonView, ...]
    scenarios: ScenarioResults | None
    """What stands in place of comparisons and table in a run of scenarios."""
    table: ResultsTable
    legend: tuple[tuple[str, str, str], ...]
    """Kind, symbol and meaning of each mark in the table."""
    words: tuple[Term, ...]
    statistics: tuple[Term, ...]
    endings: tuple[Term, ...]
    systems: tuple[SystemPrompt, ...]
    pages: tuple[TrialPage, ...]


def build_report(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    load_trajectory: LoadTrajectory,
    *,
    baseline: str | None = None,
) -> Report:
    """Say everything there is to say about a run.

    Raises:
        BadInputError: `baseline` is not a variant of the run, or has no trials.
    """
    ordered = _in_order(run, trials)
    base = _baseline(run, ordered, baseline)
    there = {trial.task for trial in ordered if trial.variant == base}
    # Variants of other tasks only have nothing in common with it.
    candidates = [
        variant.name
        for variant in run.variants
        if variant.name != base
        and any(trial.variant == variant.name and trial.task in there for trial in ordered)
    ]
    compared = [compare_variants(ordered, base, name) for name in candidates] if base else []
    scenarios = scenario_results(run, ordered) if is_of_scenarios(run) else None
    words, statistics, endings = glossary(
        ordered,
        compared=bool(compared),
        scripted=scenarios is not None,
        used=_used_terms(ordered),
    )
    trajectories = {trial.trial_id: load_trajectory(trial) for trial in ordered}
    systems = _systems(ordered, trajectories)
    table = results_table(run, ordered, base)
    return Report(
        suite=run.suite,
        description=run.description,
        run_id=run.run_id,
        baseline=base,
        facts=run_facts(run, ordered),
        variants=variant_views(run, base),
        notices=notices(run, ordered),
        comparisons=comparison_views(compared),
        scenarios=scenarios,
        table=table,
        legend=tuple((kind, SYMBOLS[kind], WORDS[kind]) for kind in table.kinds),
        words=words,
        statistics=statistics,
        endings=endings,
        systems=tuple(systems.values()),
        pages=_pages(run, ordered, trajectories, systems, base),
    )


def _in_order(run: RunRecord, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Trials as the table has them: by task, variant and repeat."""
    tasks = {name: index for index, name in enumerate(run.tasks)}
    variants = {variant.name: index for index, variant in enumerate(run.variants)}

    def place(trial: TrialRecord) -> tuple[int, str, int, str, int]:
        return (
            tasks.get(trial.task, len(tasks)),
            trial.task,
            variants.get(trial.variant, len(variants)),
            trial.variant,
            trial.repeat,
        )

    return sorted(trials, key=place)


def _baseline(run: RunRecord, trials: Sequence[TrialRecord], wanted: str | None) -> str | None:
    held = {trial.variant for trial in trials}
    known = [variant.name for variant in run.variants if variant.name in held]
    if wanted is None:
        return known[0] if known else None
    if wanted not in known:
        choice = f"choose from {', '.join(known)}" if known else "the run has no trials"
        raise BadInputError(f"baseline {wanted!r} has no trials in run {run.run_id!r}: {choice}")
    return wanted


def _used_terms(trials: Sequence[TrialRecord]) -> set[str]:
    used = {name for trial in trials for name in trial.scores}
    if any(trial.confirmed is not None for trial in trials):
        used.add("confirmed")
    if any(trial.mixed for trial in trials):
        used.add("mixed")
    return used


def _systems(
    trials: Sequence[TrialRecord], trajectories: dict[str, Trajectory | None]
) -> dict[str, SystemPrompt]:
    """Each system prompt once: it is long, and most trials share it."""
    users: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        trajectory = trajectories[trial.trial_id]
        if trajectory is not None and trajectory.system is not None:
            users[trajectory.system].append(trial.variant)
    return {
        text: SystemPrompt(
            anchor=f"system/{number}",
            number=number,
            text=text,
            variants=tuple(dict.fromkeys(variants)),
            trials=len(variants),
        )
        for number, (text, variants) in enumerate(users.items(), 1)
    }


def _pages(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    trajectories: dict[str, Trajectory | None],
    systems: dict[str, SystemPrompt],
    baseline: str | None,
) -> tuple[TrialPage, ...]:
    marks = [mark(trial, trial.trial_id) for trial in trials]
    by_cell: dict[tuple[str, int], list[TrialRecord]] = defaultdict(list)
    by_repeat: dict[tuple[str, str], list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        by_cell[trial.task, trial.repeat].append(trial)
        by_repeat[trial.task, trial.variant].append(trial)
    pages = []
    for index, trial in enumerate(trials):
        cell = by_cell[trial.task, trial.repeat]
        partner = next((other for other in cell if other.variant == baseline), None)
        trajectory = trajectories[trial.trial_id]
        shared, parting = _relation(trial, partner, trajectories)
        system = trajectory.system if trajectory else None
        pages.append(
            TrialPage(
                anchor=anchor(trial),
                trial_id=trial.trial_id,
                task=trial.task,
                lead=_lead(run, trial),
                mark=marks[index],
                state=word_of(trial),
                ending=ending_label(trial.termination_reason),
                ending_key=trial.termination_reason.value,
                is_mixed=trial.mixed,
                differences=trial_page.difference_lines(trial),
                error=trial_page.error_lines(trial.error),
                tool_changes=trial_page.tool_changes(trial),
                request_changes=trial_page.request_changes(trial),
                error_title=(
                    "What went wrong" if marks[index].kind == "unscored" else "Why it ended"
                ),
                facts=trial_page.facts(trial, trajectory),
                ignored=trial.ignored,
                scores=trial_page.scores(trial),
                unscored=trial_page.unscored(trial),
                output=trial_page.handed_in(trajectory),
                system=None if system is None else systems[system],
                turns=None if trajectory is None else conversation(trajectory, shared),
                parting=parting,
                other_variants=_others(trial, cell, lambda other: other.variant),
                other_repeats=_others(
                    trial,
                    _near(trial, by_repeat[trial.task, trial.variant]),
                    lambda other: f"repeat {other.repeat}",
                ),
                previous=marks[index - 1] if index else None,
                next=marks[index + 1] if index + 1 < len(marks) else None,
            )
        )
    return tuple(pages)


def _lead(run: RunRecord, trial: TrialRecord) -> str:
    """What stands under the task's name: variant and repeat; of a scenario its title."""
    repeat = f"repeat {trial.repeat}"
    if not is_of_scenarios(run):
        return f"{trial.variant} · {repeat}"
    parts = (run.titles.get(trial.task, ""), repeat if run.repeats > 1 else "")
    return " · ".join(filter(None, parts))


def _others(
    trial: TrialRecord, group: Sequence[TrialRecord], name: Callable[[TrialRecord], str]
) -> tuple[Mark, ...]:
    return tuple(mark(other, name(other)) for other in group if other is not trial)


def _near(trial: TrialRecord, repeats: Sequence[TrialRecord]) -> Sequence[TrialRecord]:
    """Those a page has links to: with links to all, a report would grow with their square."""
    here = bisect_left(repeats, trial.repeat, key=lambda other: other.repeat)
    return repeats[max(0, here - _REPEATS_NEAR) : here + _REPEATS_NEAR + 1]


def _relation(
    trial: TrialRecord,
    partner: TrialRecord | None,
    trajectories: dict[str, Trajectory | None],
) -> tuple[int | None, str]:
    """Messages shared with the baseline's trial, and what to say about it."""
    if partner is None or partner is trial:
        return None, ""
    mine, theirs = trajectories[trial.trial_id], trajectories[partner.trial_id]
    if mine is None or theirs is None:
        return None, ""
    if trial.transcript_digest == partner.transcript_digest:
        return None, f"Word for word the same conversation as under {partner.variant}."
    shared = shared_messages(mine, theirs)
    if mine.system != theirs.system:
        return None, f"Under {partner.variant} the system prompt is another one."
    if shared == 0:
        return None, f"It differs from {partner.variant} from the start."
    return shared, f"Up to the mark below it is the same as under {partner.variant}."
