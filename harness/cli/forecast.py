"""What a run would do, as far as the recordings tell: `harness run --dry-run`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import Field

from harness.analysis import numbers
from harness.cassette.file.view import CassetteView, InteractionView, read
from harness.cli.execution import Planned
from harness.cli.terminal import table
from harness.errors import ModelCallError
from harness.loop.usage import add_usage
from harness.providers.catalog import dialect_of, recorded_turn
from harness.runner.hosting import not_runnable
from harness.runner.plan import TrialSpec
from harness.runner.trial import cassette_file
from harness.schema.presets import PresetName
from harness.schema.record import Record
from harness.schema.results import RecordMode
from harness.schema.trajectory import UsageTotal
from harness.scorers.efficiency import cost_usd


class VariantForecast(Record):
    """All trials of one variant on one task."""

    task: str
    variant: str
    trials: int
    recorded_trials: int
    """Trials with a finished recording of this version of the task."""
    recorded_calls: int
    """Calls in those recordings."""
    live_trials: int
    """Trials that would call a live model."""
    misses: int
    """Trials that are neither recorded nor to be recorded: likely misses."""


class Forecast(Record):
    """A whole run."""

    suite: str
    record_mode: RecordMode
    trials: int
    recorded_calls: int
    live_trials: int
    live_calls: int | None
    """None where a trial was never recorded: how many calls it makes is not known."""
    cost_usd: float | None
    """Of the live calls; None where calls or prices are not known."""
    misses: int
    variants: tuple[VariantForecast, ...]
    presets: dict[str, PresetName] = Field(default_factory=dict)
    """Of the variants that have another than `default`."""
    not_runnable: dict[str, str] = Field(default_factory=dict)
    """Task -> why its trials, of those that are not recorded, would be skipped."""
    scenarios: int = 0
    """Trials that are scripted: they need no recording."""


@dataclass(frozen=True, slots=True)
class _Trial:
    spec: TrialSpec
    calls: tuple[InteractionView, ...] | None
    """Its recording; None where there is none of this version of the task."""
    is_live: bool
    is_skipped: bool

    @property
    def is_miss(self) -> bool:
        return self.calls is None and not (self.is_live or self.is_skipped)


def forecast(planned: Planned) -> Forecast:
    """Hold the plan against the recordings; nothing is run.

    Raises:
        CassetteError: a cassette is damaged.
    """
    blocked = _not_runnable(planned)
    trials = list(_trials(planned, blocked))
    trials.sort(key=lambda trial: trial.spec.trial_id)
    live = [trial for trial in trials if trial.is_live]
    return Forecast(
        suite=planned.suite.name,
        record_mode=planned.settings.record_mode,
        trials=len(planned.specs),
        recorded_calls=_calls(trials),
        live_trials=len(live),
        live_calls=_calls(live) if all(trial.calls is not None for trial in live) else None,
        cost_usd=_total(_cost(trial) for trial in live),
        misses=sum(trial.is_miss for trial in trials),
        variants=tuple(
            _variant(list(members))
            for _, members in groupby(
                trials, key=lambda trial: (trial.spec.task.name, trial.spec.variant.name)
            )
        ),
        presets={
            variant.name: variant.preset
            for variant in planned.suite.variants
            if variant.preset != "default"
        },
        not_runnable=blocked,
        scenarios=len(planned.specs) - len(trials),
    )


def _not_runnable(planned: Planned) -> dict[str, str]:
    """Of a run that records: the tasks that cannot be run here, with the reason."""
    if planned.settings.record_mode == "none":
        return {}
    tasks = {cell.task.name: cell.task for cell in planned.recordable}
    found = {name: not_runnable(task, planned.settings.hosting) for name, task in tasks.items()}
    return {name: reason for name, reason in found.items() if reason is not None}


def _trials(planned: Planned, blocked: Container[str]) -> Iterable[_Trial]:
    mode = planned.settings.record_mode
    for cell in planned.recordable:
        path = planned.settings.cassettes / cassette_file(cell)
        view = read(path) if path.exists() else None
        for spec in cell.specs:
            calls = _recorded(view, spec)
            fills = mode == "new_episodes" or (mode == "once" and view is None)
            is_live = mode == "all" or (calls is None and fills)
            yield _Trial(
                spec,
                calls,
                is_live=is_live and spec.task.name not in blocked,
                is_skipped=is_live and spec.task.name in blocked,
            )


def _recorded(view: CassetteView | None, spec: TrialSpec) -> tuple[InteractionView, ...] | None:
    trial = view.trials.get(spec.variant.name) if view else None
    if view is None or trial is None or trial.task_digest != spec.task.digest:
        return None
    return tuple(view.interactions[name] for name in trial.interactions)


def _calls(trials: Iterable[_Trial]) -> int:
    return sum(len(trial.calls or ()) for trial in trials)


def _cost(trial: _Trial) -> float | None:
    """What the recording of a trial cost: the best guess for recording it again."""
    if trial.calls is None or trial.spec.model.price is None:
        return None
    dialect = dialect_of(trial.spec.model)
    total = UsageTotal()
    for call in trial.calls:
        try:
            usage = recorded_turn(dialect, call.line.response.body).usage
        except ModelCallError:
            usage = None
        total = add_usage(total, usage)
    return cost_usd(total, trial.spec.model.price)


def _total(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum(cost for cost in known if cost is not None)


def _variant(trials: Sequence[_Trial]) -> VariantForecast:
    return VariantForecast(
        task=trials[0].spec.task.name,
        variant=trials[0].spec.variant.name,
        trials=len(trials),
        recorded_trials=sum(trial.calls is not None for trial in trials),
        recorded_calls=_calls(trials),
        live_trials=sum(trial.is_live for trial in trials),
        misses=sum(trial.is_miss for trial in trials),
    )


def forecast_lines(found: Forecast) -> list[str]:
    """The forecast as a table, and what it comes to."""
    presets = [f"{name}: preset {preset}" for name, preset in found.presets.items()]
    if found.scenarios:
        scripted = numbers.plural(found.scenarios, "scripted trial")
        return [*presets, f"{found.suite}: {scripted}, no model.", "Nothing was run."]
    heading = ["task", "variant", "trials", "recorded", "calls recorded", "live", "not recorded"]
    rows = [
        [row.task, row.variant, *map(numbers.count, counts)]
        for row in found.variants
        for counts in [
            (row.trials, row.recorded_trials, row.recorded_calls, row.live_trials, row.misses)
        ]
    ]
    return [
        *table([heading, *rows], right=range(2, 7)),
        "",
        *presets,
        f"{found.suite}: {numbers.plural(found.trials, 'trial')}, "
        f"{numbers.plural(found.recorded_calls, 'recorded model call')}.",
        _live(found),
        *(f"{name}: {reason}" for name, reason in found.not_runnable.items()),
        *_misses(found),
        "Nothing was run.",
    ]


def _live(found: Forecast) -> str:
    if not found.live_trials:
        return "No live calls."
    calls = "an unknown number of" if found.live_calls is None else f"about {found.live_calls:,}"
    cost = "unknown" if found.cost_usd is None else f"about {numbers.dollars(found.cost_usd)}"
    trials = numbers.plural(found.live_trials, "trial")
    return f"{trials} would make {calls} live calls; estimated cost: {cost}."


def _misses(found: Forecast) -> list[str]:
    if not found.misses:
        return []
    trials = numbers.plural(found.misses, "trial")
    return [
        f"{trials} without a finished recording of this version of the task: to be expected as "
        "misses; --record-mode new_episodes records them."
    ]
