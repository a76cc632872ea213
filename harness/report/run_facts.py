"""What was run, and what a reader must know before reading any number."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from harness.analysis import numbers
from harness.analysis.misses import group_misses
from harness.report.marks import Mark, ending_label, kind_of, mark
from harness.report.scenario_results import is_of_scenarios
from harness.report.trial_page import ErrorLine, Fact, changed_lines, error_lines
from harness.schema.record import Json
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.suite import Variant
from harness.scorers.outcome import reward

MAX_LINKS = 24
MAX_CAUSES = 8

RECORD_MODES = {
    "none": "none: every model call was answered from the cassette",
    "once": "once: new cassettes were recorded, existing ones replayed",
    "new_episodes": "new_episodes: what was missing was recorded, the rest replayed",
    "all": "all: everything was recorded anew",
}
TOOLS_MODES = {
    "replay": "replay: tool results and verdicts came from the cassette",
    "live": "live: tools and verifiers really ran",
}
RECORDING_TOOLS = "what the cassette held no result of really ran"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that limits what the numbers say."""

    title: str
    text: str
    marks: tuple[Mark, ...]
    """Trials it is about."""
    more: int
    """How many further trials are not linked here."""
    lines: tuple[ErrorLine, ...] = ()
    """What differs, as a diff; may be empty."""


@dataclass(frozen=True, slots=True)
class VariantView:
    """One variant: what it is, and how it differs from the baseline."""

    name: str
    description: str
    model: str
    is_baseline: bool
    settings: tuple[str, ...]
    """`loop.reflection: false → true`."""
    limited_to: str
    if_same: str
    """What is said where no setting differs."""


def run_facts(run: RunRecord, trials: Sequence[TrialRecord]) -> tuple[Fact, ...]:
    """The run in a few lines."""
    if is_of_scenarios(run):
        return _scenario_facts(run, trials)
    served, recorded = (
        sum(getattr(trial, name) for trial in trials) for name in ("served", "recorded")
    )
    calls = sum(trial.model_calls for trial in trials)
    unanswered = calls - served - recorded
    answered = (
        f"{numbers.count(calls)} in all: {numbers.count(served)} from the cassette,"
        f" {numbers.count(recorded)} live"
        + (f", {numbers.count(unanswered)} without an answer" if unanswered > 0 else "")
    )
    if run.imported:
        return _imported_facts(run, trials)
    return (
        *_origin(run),
        Fact("Tasks", numbers.count(len(run.tasks))),
        Fact("Repeats", numbers.count(run.repeats), "repeat"),
        Fact("Trials", _of(len(trials), run.planned_trials), "trial"),
        Fact("Model calls", answered, "model_calls"),
        Fact("Record mode", RECORD_MODES[run.record_mode], "record_mode"),
        Fact("Tools", _tools(run)),
        *_sandboxes(trials),
        *_circumstances(run),
    )


def _sandboxes(trials: Sequence[TrialRecord]) -> tuple[Fact, ...]:
    """In what something ran, where anything did."""
    kinds = Counter(trial.sandbox for trial in trials if trial.sandbox is not None)
    if not kinds:
        return ()
    told = (f"{kind} ({numbers.plural(count, 'trial')})" for kind, count in sorted(kinds.items()))
    return (Fact("Sandbox", ", ".join(told)),)


def _imported_facts(run: RunRecord, trials: Sequence[TrialRecord]) -> tuple[Fact, ...]:
    """Of trials that others ran: nothing was replayed or recorded here."""
    suite, name, _ = _origin(run)
    return (
        suite,
        name,
        Fact("Imported from", f"{run.imported}, which ran the trials"),
        Fact("Latest trial", run.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        Fact("Tasks", numbers.count(len(run.tasks))),
        Fact("Repeats", numbers.count(run.repeats), "repeat"),
        Fact("Trials", numbers.count(len(trials)), "trial"),
        *(fact for fact in _circumstances(run) if fact.label == "Versions"),
    )


def _scenario_facts(run: RunRecord, trials: Sequence[TrialRecord]) -> tuple[Fact, ...]:
    """Of a run of scenarios: no cassette and no model is in play."""
    calls = sum(trial.model_calls for trial in trials)
    repeats = (Fact("Repeats", numbers.count(run.repeats), "repeat"),) if run.repeats > 1 else ()
    return (
        *_origin(run),
        Fact("Scenarios", numbers.count(len(run.tasks))),
        *repeats,
        Fact("Model calls", f"{numbers.count(calls)} in all, scripted", "model_calls"),
        *_circumstances(run),
    )


def _origin(run: RunRecord) -> tuple[Fact, ...]:
    return (
        Fact("Suite", f"{run.suite}, version {run.suite_version}"),
        Fact("Run", run.run_id),
        Fact("Started", run.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")),
    )


def _circumstances(run: RunRecord) -> tuple[Fact, ...]:
    options = [*run.overrides, *([f"preset {run.preset}"] if run.preset else [])]
    options += [f"front {run.front}"] if run.front != "http" else []
    options += [f"pace {run.pace}"] if run.pace != "fast" else []
    options += [f"faults {run.faults}"] if run.faults is not None else []
    options += [f"sandbox {run.sandbox}"] if run.sandbox is not None else []
    for who in ("agent", "verifier"):
        factor = getattr(run, f"{who}_timeout_multiplier")
        options += [f"{who} timeout × {factor:g}"] if factor != 1 else []
    fork = run.forked
    origin = f"{fork.trial_id} of run {fork.run_id}, from turn {fork.turn} on" if fork else ""
    found = (
        Fact("Forked", origin),
        Fact("Overrides", ", ".join(options) or "none"),
        Fact("Git revision", run.git_revision or "unknown"),
        Fact("Versions", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
        Fact("Host", ", ".join(f"{name} {value}" for name, value in run.host.items())),
    )
    return tuple(fact for fact in found if fact.value)


def variant_views(run: RunRecord, baseline: str | None) -> tuple[VariantView, ...]:
    """The variants of a run."""
    against = next((variant for variant in run.variants if variant.name == baseline), None)
    # Settings of others are not known: nothing can be said about them.
    if_same = f"{run.imported} does not tell" if run.imported else "nothing"
    return tuple(_variant(variant, against, if_same) for variant in run.variants)


def notices(run: RunRecord, trials: Sequence[TrialRecord]) -> tuple[Notice, ...]:
    """Trials without a result, with mixed models or without verdict, and trials not run."""
    unscored = [trial for trial in trials if kind_of(trial) == "unscored"]
    endings = Counter(trial.termination_reason for trial in unscored)
    kinds = " and ".join(
        numbers.plural(count, ending_label(ending)) for ending, count in sorted(endings.items())
    )
    skipped = [trial for trial in trials if kind_of(trial) == "skipped"]
    mixed = [trial for trial in trials if trial.mixed]
    # Where nothing judges a task, there is no word to miss.
    judged = {trial.task for trial in trials if trial.outcome or trial.verdict is not None}
    unjudged = [t for t in trials if kind_of(t) == "unjudged" and t.task in judged]
    absent = run.planned_trials - len(trials)
    found = [
        _unscored(
            unscored,
            f"{_trials(unscored, 'has', 'have')} no result",
            f"{kinds}: not scored, and in no average and no comparison."
            + _how_to_record(run, unscored),
        ),
        *_misses(unscored),
        _notice(
            skipped,
            f"{_trials(skipped, 'was', 'were')} not run: this machine cannot run the task",
            f"Not scored, and in no average and no comparison. {_reasons(skipped, _error)}",
        ),
        _notice(
            mixed,
            f"{_trials(mixed, 'was', 'were')} answered by several models",
            "Counted in the table, left out of every comparison.",
        ),
        _notice(
            [trial for trial in trials if trial.tool_differences],
            "Tools that ran again gave something else than what is recorded",
            "The model was answered with what is recorded: the conversations do not show it.",
        ),
        _asked_otherwise([trial for trial in trials if trial.request_differences]),
        _notice(
            unused := [trial for trial in trials if trial.unused],
            f"{_trials(unused, 'was', 'were')} over before the recording is",
            f"{numbers.plural(sum(trial.unused for trial in unused), 'recorded answer')} came to "
            "no use: another preset or limit may fit.",
        ),
        _notice(
            unjudged,
            f"{_trials(unjudged, 'has', 'have')} no verdict",
            "The verifier's word is missing: they count as neither passed nor failed. "
            + _reasons(unjudged, lambda trial: reward(trial.verdict).explanation),
        ),
    ]
    if absent > 0:
        planned = numbers.plural(run.planned_trials, "planned trial")
        title = (
            f"{numbers.count(absent)} of {planned} {'is' if absent == 1 else 'are'} not in the log"
        )
        if not trials:
            title = f"None of the {planned} is in the log"
        found.append(Notice(title, "The run was interrupted, or is still going on.", (), 0))
    return tuple(notice for notice in found if notice is not None)


def _asked_otherwise(trials: Sequence[TrialRecord]) -> Notice | None:
    """Of recordings that are replayed in order: how many calls differ, and how most of them do."""
    count = sum(trial.request_differences for trial in trials)
    changes = [change for trial in trials for change in trial.request_changes]
    found = Counter(map(changed_lines, changes))
    text = "The recording is replayed in order: they got its answers, whatever they asked."
    difference = ""
    if found:
        lines, times = found.most_common(1)[0]
        difference = next(one.difference for one in changes if changed_lines(one) == lines)
        text += f" Below is the most frequent difference; {numbers.count(times)} of"
        text += (
            " them have it." if len(changes) == count else f" {len(changes)} that are kept have it."
        )
    calls = f"{numbers.plural(count, 'model call')} in {numbers.plural(len(trials), 'trial')}"
    title = f"{calls} said something else than what is recorded"
    notice = _notice(trials, title, text)
    return notice and replace(notice, lines=error_lines(difference))


def _unscored(unscored: Sequence[TrialRecord], title: str, text: str) -> Notice | None:
    """All of them in words; links to those that no cause of misses lists."""
    if not unscored:
        return None
    others = [trial for trial in unscored if trial.miss is None]
    return _notice(others, title, text) or Notice(title, text, (), 0)


def _error(trial: TrialRecord) -> str:
    return trial.error or ""


def _reasons(trials: Sequence[TrialRecord], told: Callable[[TrialRecord], str]) -> str:
    """Each reason once, with the tasks it holds back."""
    tasks: dict[str, dict[str, None]] = {}
    for trial in trials:
        tasks.setdefault(told(trial), {})[trial.task] = None
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in tasks.items())


def _how_to_record(run: RunRecord, unscored: Sequence[TrialRecord]) -> str:
    if not any(trial.miss for trial in unscored):
        return ""
    options = [part for text in run.overrides for part in ("--set", text)]
    options += ["--preset", run.preset] if run.preset else []
    command = shlex.join(("harness", "accept", run.suite_folder, *options))
    return f" To record what is missing: {command}"


def _misses(unscored: Sequence[TrialRecord]) -> Iterator[Notice | None]:
    groups = group_misses(unscored)
    by_id = {trial.trial_id: trial for trial in unscored}
    for group in groups[:MAX_CAUSES]:
        tasks = f"Tasks: {', '.join(group.tasks)}. Variants: {', '.join(group.variants)}."
        notice = _notice(
            [by_id[name] for name in group.trials],
            f"{numbers.plural(len(group.trials), 'replay miss')}: {group.cause}",
            tasks,
        )
        yield notice and replace(notice, lines=error_lines(group.difference))
    if left := groups[MAX_CAUSES:]:
        missed = [by_id[name] for group in left for name in group.trials]
        yield _notice(missed, f"{numbers.plural(len(left), 'more cause')} of replay misses", "")


def _tools(run: RunRecord) -> str:
    is_recording = run.record_mode in ("new_episodes", "all")
    if is_recording or (run.record_mode == "once" and run.tools == "replay"):
        return f"{run.tools}: {RECORDING_TOOLS}"
    return TOOLS_MODES[run.tools]


def _notice(trials: Sequence[TrialRecord], title: str, text: str) -> Notice | None:
    if not trials:
        return None
    marks = tuple(mark(trial, trial.trial_id) for trial in trials[:MAX_LINKS])
    return Notice(title, text, marks, max(0, len(trials) - MAX_LINKS))


def _trials(trials: Sequence[TrialRecord], one: str, several: str) -> str:
    return f"{numbers.plural(len(trials), 'trial')} {one if len(trials) == 1 else several}"


def _of(part: int, whole: int) -> str:
    if part == whole:
        return numbers.count(part)
    return f"{numbers.count(part)} of {numbers.count(whole)}"


def _variant(variant: Variant, baseline: Variant | None, if_same: str) -> VariantView:
    is_baseline = baseline is not None and variant.name == baseline.name
    settings: tuple[str, ...] = ()
    if is_baseline and variant.preset != "default":
        settings = (f"preset: {variant.preset}",)
    if baseline is not None and not is_baseline:
        old, new = _settings(baseline), _settings(variant)
        settings = tuple(
            f"{key}: {_short(old.get(key))} → {_short(new.get(key))}"
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key)
        )
    model = variant.model
    warmth = "" if model.temperature is None else f", temperature {model.temperature:g}"
    return VariantView(
        name=variant.name,
        description=variant.description,
        model=f"{model.name} ({model.provider}{warmth})",
        is_baseline=is_baseline,
        settings=settings,
        limited_to="" if "*" in variant.tasks else _few(variant.tasks),
        if_same=if_same,
    )


def _few(names: Sequence[str]) -> str:
    if len(names) <= MAX_CAUSES:
        return ", ".join(names)
    return f"{', '.join(names[:MAX_CAUSES])} and {numbers.count(len(names) - MAX_CAUSES)} more"


def _settings(variant: Variant) -> dict[str, Json]:
    named = {"model", "preset", "loop", "skills", "disclosure"}
    return _flat(variant.model_dump(mode="json", include=named), "")


def _flat(value: Json, prefix: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Json] = {}
    for key, inner in value.items():
        flat |= _flat(inner, f"{prefix}.{key}" if prefix else key)
    return flat


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
