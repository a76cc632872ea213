"""One trial as a mark in a table: a symbol that says how it went and leads to its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.results import TrialRecord
from harness.scorers.scenario import NAME as SCENARIO

MarkKind = Literal["passed", "failed", "unjudged", "unscored", "skipped", "missing"]

SYMBOLS: dict[MarkKind, str] = {
    "passed": "✓",
    "failed": "✗",
    "unjudged": "?",
    "unscored": "!",
    "skipped": "»",
    "missing": "·",
}
"""Colour is never alone: each kind has its own symbol."""

WORDS: dict[MarkKind, str] = {
    "passed": "passed",
    "failed": "failed",
    "unjudged": "no verdict",
    "unscored": "no result",
    "skipped": "not run here",
    "missing": "not in the log",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands for one trial."""

    kind: MarkKind
    symbol: str
    label: str
    """Read aloud, and shown on hover."""
    short: str
    """`repeat 0`, or the variant's name."""
    href: str | None
    """None where there is no trial."""
    mixed: bool = False


def anchor(trial: TrialRecord) -> str:
    """The id of a trial's page in the document; `#` plus this links to it."""
    return "trial/" + quote(trial.trial_id, safe="/-._~")


def ending_label(reason: TerminationReason) -> str:
    """`max_iterations` -> `max iterations`."""
    return reason.value.replace("_", " ")


def kind_of(trial: TrialRecord) -> MarkKind:
    """How a trial went, for someone who looks for half a second."""
    if trial.termination_reason is TerminationReason.SKIPPED:
        return "skipped"
    if trial.termination_reason in UNSCORED and SCENARIO not in trial.scores:
        return "unscored"
    return trial.outcome or "unjudged"


def word_of(trial: TrialRecord) -> str:
    """The same in a word: a scenario holds or does not."""
    kind = kind_of(trial)
    if SCENARIO in trial.scores and kind in ("passed", "failed"):
        return "holds" if kind == "passed" else "does not hold"
    return WORDS[kind]


def mark(trial: TrialRecord, short: str = "") -> Mark:
    """The mark of a trial."""
    kind = kind_of(trial)
    said = f"{word_of(trial)}, ended {ending_label(trial.termination_reason)}"
    mixed = ", answered by several models" if trial.mixed else ""
    return Mark(
        kind=kind,
        symbol=SYMBOLS[kind],
        label=f"{trial.task}, {trial.variant}, repeat {trial.repeat}: {said}{mixed}",
        short=short or f"repeat {trial.repeat}",
        href=f"#{anchor(trial)}",
        mixed=trial.mixed,
    )


def missing(task: str, variant: str, repeat: int) -> Mark:
    """The mark of a trial that was planned and is not in the log."""
    label = f"{task}, {variant}, repeat {repeat}: {WORDS['missing']}"
    return Mark("missing", SYMBOLS["missing"], label, f"repeat {repeat}", None)
