"""`harness run`: plan a suite, run its trials into a run log, and summarise them."""

from __future__ import annotations

from typing import Any, get_args

import click

from harness.analysis.baseline import skipped_lines
from harness.cli import DOES_NOT_HOLD, FINE, UNDECIDED
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
)
from harness.cli.forecast import forecast, forecast_lines
from harness.cli.hosting import machine_options
from harness.cli.options import environment, make_command, selection
from harness.cli.run_folder import write_report
from harness.cli.summary import RunSummary, summarise, summary_lines
from harness.cli.terminal import Terminal
from harness.cli.unscored import (
    difference_lines,
    fault_lines,
    request_lines,
    unjudged_lines,
    unscored_lines,
    unused_lines,
)
from harness.errors import BadInputError
from harness.schema.recording import Front, Pace
from harness.schema.results import RecordMode, ToolsMode


@make_command("run", example="harness run basics --task 'contact-*' --repeats 1")
@click.argument("suites", nargs=-1, required=True, metavar="SUITE...")
@selection
@machine_options
@click.option(
    "--record-mode",
    type=click.Choice(get_args(RecordMode)),
    default="none",
    show_default=True,
    help="none: replay only; once: record where there is no recording; new_episodes: record what "
    "is missing; all: record anew.",
)
@click.option(
    "--tools",
    type=click.Choice(get_args(ToolsMode)),
    default="replay",
    show_default=True,
    help="Whether tools and verifiers run again on replay; recording runs them.",
)
@click.option(
    "--front",
    type=click.Choice(get_args(Front)),
    default="http",
    show_default=True,
    help="http: the vendor's SDK asks, and is answered; direct: faster, without it; replay only.",
)
@click.option(
    "--pace",
    type=click.Choice(get_args(Pace)),
    default="fast",
    show_default=True,
    help="recorded: answers take as long as they took.",
)
@click.option(
    "--faults",
    metavar="SPEC",
    help="Answers that fail on replay, as in 429@2,timeout@4 (second and fourth call) or "
    "cut%10,seed=7 (a tenth of them); kinds are in docs/faults.md.",
)
@click.option("--allow-live", is_flag=True, help="Allow recording where CI is set.")
@click.option("--dry-run", is_flag=True, help="Say what would run and what is recorded of it.")
def command(
    terminal: Terminal,
    suites: tuple[str, ...],
    allow_live: bool,
    dry_run: bool,
    record_mode: RecordMode,
    tools: ToolsMode,
    front: Front,
    pace: Pace,
    faults: str | None,
    **options: Any,
) -> int:
    """Run suites: each task, variant and repeat becomes a trial in a new folder under reports/.

    SUITE is a folder with a suite.toml, a folder of tasks or one task's folder (with --set for the
    model), a folder of scenario files or one of them, or a name under suites/. Without
    --record-mode nothing is called: recordings answer. Exits with 1 where a scenario does not hold.
    """
    if record_mode != "none" and environment().get("CI") and not allow_live:
        raise BadInputError(
            f"--record-mode {record_mode} may call models, and CI is set; add --allow-live"
        )
    chosen = Selection(**options)
    if chosen.out and len(suites) > 1:
        raise BadInputError("--out is one run's folder; run the suites one by one, or leave it out")
    answering = Answering(record_mode, tools, front, pace, faults)
    planned = [plan_suite(suite, chosen, answering) for suite in suites]
    for one in planned:
        say_first(one, terminal)
    if dry_run:
        forecasts = [forecast(one) for one in planned]
        data = {"suites": [one.model_dump(mode="json") for one in forecasts]}
        terminal.result(data, [line for one in forecasts for line in forecast_lines(one)])
        return FINE
    if record_mode != "none":
        for one in planned:
            check_keys(one)
            check_cassettes(one)
    summaries = []
    for one in planned:
        log = execute(one, terminal)
        summaries.append(summarise(log, str(write_report(log))))
    _print(terminal, planned, summaries)
    if any(one.scenarios and one.scenarios.differences for one in summaries):
        return DOES_NOT_HOLD
    undecided = any(one.unscored or len(one.skipped) == one.trials for one in summaries)
    return UNDECIDED if undecided else FINE


def _print(terminal: Terminal, planned: list[Planned], summaries: list[RunSummary]) -> None:
    lines = []
    for summary in summaries:
        lines += [*summary_lines(summary), "", *difference_lines(summary.tool_differences)]
        lines += request_lines(summary.request_differences)
        lines += unused_lines(summary.unused)
        lines += fault_lines(summary)
        lines += skipped_lines(summary.skipped, detailed=terminal.verbosity > 0)
        lines += unjudged_lines(summary.unjudged)
        lines.append(f"Report: {summary.report}")
    terminal.result({"runs": [one.model_dump(mode="json") for one in summaries]}, lines)
    for one, summary in zip(planned, summaries, strict=True):
        if summary.unscored:
            explained = unscored_lines(
                summary.unscored,
                summary.misses,
                trials=summary.trials,
                record=accept_command(
                    one.settings.suite_argument, one.selection, one.settings.secrets
                ),
            )
            terminal.error("\n".join(explained))
