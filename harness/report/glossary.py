"""Every word of the page that is not everyday English, explained."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.report.marks import ending_label
from harness.schema.loop_config import TerminationReason
from harness.schema.results import TrialRecord


@dataclass(frozen=True, slots=True)
class Term:
    """One explained word."""

    key: str
    name: str
    meaning: str

    @property
    def anchor(self) -> str:
        """The id of its entry."""
        return f"term-{self.key}"


ENDINGS: dict[TerminationReason, str] = {
    TerminationReason.COMPLETED: "The agent gave a final answer, or a result that was valid. "
    "Whether it is right is the verifier's word.",
    TerminationReason.SIGNAL: "A tool, a check or a limit ended the run with a named signal.",
    TerminationReason.MAX_ITERATIONS: "The limit of iterations was reached first.",
    TerminationReason.MAX_ATTEMPTS: "Every attempt gave a result that failed validation.",
    TerminationReason.NO_OUTPUT: "The agent answered in text where a structured result was due.",
    TerminationReason.SUBMIT_BEFORE_OUTPUT: "The agent submitted before it had made a draft.",
    TerminationReason.NO_SUBMIT: "The agent made a draft and never submitted it.",
    TerminationReason.ERROR: "Too many tool calls in a row failed.",
    TerminationReason.TOOL_ERROR: "A tool call failed, and the settings end the run on the first.",
    TerminationReason.MODEL_ERROR: "Model calls failed.",
    TerminationReason.LOOP_DETECTED: "The agent asked for the same calls again and again.",
    TerminationReason.BUDGET_EXCEEDED: "A budget of iterations, calls or tokens was used up.",
    TerminationReason.DURATION_EXCEEDED: "The time allowed was used up.",
    TerminationReason.DENIED: "A tool call was denied, and the settings end the run on that.",
    TerminationReason.BLOCKED: "A tool said that the run cannot go on.",
    TerminationReason.REFUSAL: "The model refused.",
    TerminationReason.TRUNCATED: "An answer was cut at its token limit.",
    TerminationReason.CONTEXT_EXCEEDED: "The conversation outgrew the model's context window.",
    TerminationReason.CANCELLED: "The run was cancelled.",
    TerminationReason.SUSPENDED: "The run waits for an answer from outside and can be resumed.",
    TerminationReason.REPLAY_MISS: "Replay needed something the cassette does not hold. It says "
    "nothing about the agent: not scored, counted apart.",
    TerminationReason.INFRASTRUCTURE_ERROR: "The machine failed, not the agent. Not scored, "
    "counted apart.",
    TerminationReason.SKIPPED: "The task cannot be run on this machine, so nothing was asked. Not "
    "scored, counted apart.",
}

_WORDS: tuple[tuple[str, str, str], ...] = (
    ("trial", "Trial", "One task, run once under one variant."),
    ("variant", "Variant", "A named model and loop configuration: what is compared."),
    ("repeat", "Repeat", "An independent sample of the same task and variant, counted from 0."),
    ("baseline", "Baseline", "The variant that the others are compared with."),
    ("passed", "Passed, failed", "What the task's verifier says about what the agent left behind. "
     "It is independent of how the run ended."),
    ("pass_rate", "Pass rate", "Passed trials as a share of trials with a verdict. In a comparison "
     "it is averaged over each task's repeats first, then over tasks."),
    ("ending", "Ending", "How a run stopped. The endings that occur here are explained below."),
    ("iterations", "Iterations", "Turns of the loop: one model call and the tools it asked for."),
    ("attempts", "Attempts", "Rounds of handing in a result and having it validated."),
    ("model_calls", "Model calls", "Requests to a model, answered from a recording or live."),
    ("tool_calls", "Tool calls", "Calls whose tool was really invoked."),
    ("tokens", "Tokens", "Pieces of text a model reads and writes, summed over all calls: input, "
     "cache write, cache read and output. Averages leave out trials whose usage was not fully "
     "reported."),
    ("cost_usd", "Cost", "US dollars at the prices of the suite file; a dash where no price is "
     "known. Mean per trial."),
    ("duration", "Duration", "Time the trial took here. A replayed trial is much faster than a "
     "live one."),
    ("validation", "Validation", "Checking a structured result against the task's schema and rules "
     "inside the loop: valid the first time, after failures, or never."),
    ("reward", "Reward", "The number the task's verifier gave; 1 is everything right."),
    ("scenario", "Scenario", "1 where everything is as the scenario's file expects; else 0, with "
     "what differs."),
    ("confirmed", "Confirmed", "Whether the agent, asked if the task is really done, said so."),
    ("record_mode", "Record mode", "What a run does about model calls that were not recorded."),
    ("cassette", "Cassette", "The file with the recorded model answers and tool results."),
    ("mixed", "Several models", "A trial whose answers name more than one model. It cannot be "
     "counted for either."),
)  # fmt: skip

_STATISTICS: tuple[tuple[str, str, str], ...] = (
    ("effect", "Effect", "Candidate minus baseline, averaged over tasks. For tokens and cost it is "
     "the geometric mean of the tasks' ratios: ×1.30 is 30% more."),
    ("points", "Points", "Percentage points: from 40% to 50% is +10 points."),
    ("interval", "95% interval", "The range of effects that fit the data. One that holds “same” "
     "does not show a difference. A dash: too few tasks, or no variation."),
    ("p", "p", "How often a difference at least this large would appear by chance if the variants "
     "were equal. Paired by task, so repeats of one task do not count as independent."),
    ("adjusted_p", "Adjusted p", "p corrected for testing several metrics at once (Holm). A "
     "difference is called clear at 0.05 or less."),
    ("test", "Test", "How p is found. Sign-flip permutation, exact McNemar: how many of all ways "
     "to swap the two variants within tasks give a difference this large. Wilcoxon signed-rank "
     "(Pratt): the same on ranks of the differences, tasks without one included."),
    ("minimum_detectable", "Detectable", "The smallest difference in pass rate that so many tasks "
     "would show four times in five. Smaller ones would often be missed."),
    ("better", "▲ better, ▼ worse", "A clear difference in a metric where one direction is "
     "better."),
    ("different", "◆ different", "A clear difference where neither direction is better."),
    ("same", "= same", "Equal in every compared task. It is no claim about other tasks."),
    ("inconclusive", "~ inconclusive", "The data show no clear difference. That is not the same as "
     "no difference."),
    ("pair", "Pair", "Two trials of the same task and repeat, one of each variant."),
    ("left_out", "Left out", "Trials without a counterpart, without a result, or answered by "
     "several models are not compared."),
)  # fmt: skip


_OF_TASKS = {
    *("trial", "variant", "baseline", "passed", "pass_rate", "cost_usd", "reward"),
    *("record_mode", "cassette", "mixed"),
}
"""Words that a run of scenarios has no use for."""


def glossary(
    trials: Sequence[TrialRecord], *, compared: bool, scripted: bool, used: Collection[str]
) -> tuple[tuple[Term, ...], tuple[Term, ...], tuple[Term, ...]]:
    """Words of the run, words of the comparison, and the endings that occur.

    Args:
        trials: all trials of the page.
        compared: whether there is a comparison.
        scripted: whether it is a run of scenarios.
        used: keys of words that only some pages use, of those that this one does.
    """
    rare = {"confirmed", "mixed", "reward", "scenario"} - set(used)
    if scripted:
        rare |= _OF_TASKS
    words = tuple(Term(*entry) for entry in _WORDS if entry[0] not in rare)
    statistics = tuple(Term(*entry) for entry in _STATISTICS) if compared else ()
    found = {trial.termination_reason for trial in trials}
    endings = tuple(
        Term(f"ending-{reason.value}", ending_label(reason), ENDINGS[reason])
        for reason in TerminationReason
        if reason in found
    )
    return words, statistics, endings
