"""`harness run`: plan a suite, run its trials into a run log, and summarise them."""

from __future__ import annotations

from typing import Any, get_args

import click

from harness.cli import DOES_NOT_HOLD, FINE, UNDECIDED
from harness.cli.execution import (
    Selection,
    check_cassettes,
    check_keys,
    execute,
    plan_suite,
    say_kept,
)
from harness.cli.forecast import forecast, forecast_lines
from harness.cli.options import environment, make_command, selection
from harness.cli.run_folder import write_report
from harness.cli.summary import (
    RunSummary,
    difference_lines,
    summarise,
    summary_lines,
    unscored_lines,
)
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.schema.results import RecordMode, ToolsMode


@make_command("run", example="harness run basics --task 'contact-*' --repeats 1")
@click.argument("suites", nargs=-1, required=True, metavar="SUITE...")
@selection
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
@click.option("--allow-live", is_flag=True, help="Allow recording where CI is set.")
@click.option("--dry-run", is_flag=True, help="Say what would run and what is recorded of it.")
def command(
    terminal: Terminal,
    suites: tuple[str, ...],
    record_mode: RecordMode,
    tools: ToolsMode,
    allow_live: bool,
    dry_run: bool,
    **options: Any,
) -> int:
    """Run suites: each task, variant and repeat becomes a trial in a new folder under reports/.

    SUITE is a folder with a suite.toml, a folder of scenario files or one of them, or a name under
    suites/. Without --record-mode nothing is called: recordings answer. Exits with 1 where a
    scenario does not hold.
    """
    if record_mode != "none" and environment().get("CI") and not allow_live:
        raise BadInputError(
            f"--record-mode {record_mode} may call models, and CI is set; add --allow-live"
        )
    chosen = Selection(**options)
    if chosen.out and len(suites) > 1:
        raise BadInputError("--out is one run's folder; run the suites one by one, or leave it out")
    planned = [plan_suite(suite, chosen, record_mode=record_mode, tools=tools) for suite in suites]
    for one in planned:
        say_kept(one, terminal)
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
    _print(terminal, summaries)
    if any(one.scenarios and one.scenarios.differences for one in summaries):
        return DOES_NOT_HOLD
    return UNDECIDED if any(summary.unscored for summary in summaries) else FINE


def _print(terminal: Terminal, summaries: list[RunSummary]) -> None:
    lines = []
    for summary in summaries:
        lines += [*summary_lines(summary), "", *difference_lines(summary)]
        lines.append(f"Report: {summary.report}")
    terminal.result({"runs": [one.model_dump(mode="json") for one in summaries]}, lines)
    for summary in summaries:
        if summary.unscored:
            explained = unscored_lines(summary.unscored, trials=summary.trials)
            terminal.error("\n".join(explained))
