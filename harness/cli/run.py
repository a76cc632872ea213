"""`harness run`: plan a suite, run its trials into a run log, and summarise them."""

from __future__ import annotations

from typing import Any, get_args

import click

from harness.cli import FINE, UNDECIDED
from harness.cli.execution import Selection, execute, misses, plan_suite
from harness.cli.options import environment, make_command, selection
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.schema.results import RecordMode, ToolsMode


@make_command("run", example="harness run basics --task 'contact-*' --repeats 1")
@click.argument("suites", nargs=-1, required=True, metavar="SUITE...")
@click.option(
    "--record-mode",
    type=click.Choice(get_args(RecordMode)),
    default="none",
    show_default=True,
    help="none: replay only; once: record where there is no recording; new_episodes: record what is missing; all: record anew.",
)
@click.option(
    "--tools",
    type=click.Choice(get_args(ToolsMode)),
    default="replay",
    show_default=True,
    help="Whether tools and verifiers run again while replaying; recording runs them.",
)
@click.option("--allow-live", is_flag=True, help="Allow live model calls where CI is set.")
@selection
def command(
    terminal: Terminal,
    suites: tuple[str, ...],
    record_mode: RecordMode,
    tools: ToolsMode,
    allow_live: bool,
    **options: Any,
) -> int:
    """Run suites: every task x variant x repeat becomes a trial in a new folder under reports/.

    SUITE is a folder with a suite.toml, or a name under suites/. Without --record-mode nothing
    is called: recordings answer.
    """
    if record_mode != "none" and environment().get("CI") and not allow_live:
        raise BadInputError(
            f"--record-mode {record_mode} may call models, and CI is set: add --allow-live to allow it"
        )
    chosen = Selection(**options)
    if chosen.out and len(suites) > 1:
        raise BadInputError("--out is one run's folder; run the suites one by one, or leave it out")
    planned = [plan_suite(suite, chosen, record_mode=record_mode, tools=tools) for suite in suites]
    failed = False
    for one in planned:
        log = execute(one, terminal)
        failed = failed or bool(misses(log.trials()))
        print(log.folder)
    return UNDECIDED if failed else FINE
