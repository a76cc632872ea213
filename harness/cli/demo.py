"""`harness demo`: the shipped suite, replayed, compared and reported."""

from __future__ import annotations

from pathlib import Path

import harness
from harness.analysis.compare import compare_variants
from harness.cli import FINE, UNDECIDED
from harness.cli.execution import Selection, accept_command, execute, plan_suite
from harness.cli.options import make_command
from harness.cli.run_folder import REPORTS, write_report
from harness.cli.summary import summarise, summary_lines
from harness.cli.terminal import Terminal
from harness.cli.unscored import unscored_lines
from harness.errors import BadInputError

_SUITE = Path("suites", "basics")
_CASSETTES = Path("cassettes")


@make_command("demo", example="harness demo")
def command(terminal: Terminal) -> int:
    """Replay the shipped recordings, compare the variants, write the report.

    Needs a checkout of loop-harness, and neither a key nor a network.
    """
    root = _checkout()
    planned = plan_suite(str(root / _SUITE), Selection(cassettes=root / _CASSETTES))
    log = execute(planned, terminal, reports=root / REPORTS)
    report = write_report(log)
    summary = summarise(log, str(report))
    trials = log.trials()
    baseline, *others = [group.variant for group in summary.totals]
    found = [compare_variants(trials, baseline, other) for other in others]
    data = {
        "run": summary.model_dump(mode="json"),
        "comparisons": [one.model_dump(mode="json") for one in found],
    }
    lines = [*summary_lines(summary), "", *(one.headline for one in found), ""]
    terminal.result(data, [*lines, f"Report: {report}"])
    if summary.unscored:
        settings = planned.settings
        record = accept_command(settings.suite_argument, planned.selection, settings.secrets)
        explained = unscored_lines(
            summary.unscored, summary.misses, trials=summary.trials, record=record
        )
        terminal.error("\n".join(explained))
        return UNDECIDED
    return FINE


def _checkout() -> Path:
    """The checkout this is run in, or the one that the package is installed from."""
    for root in (Path(), Path(harness.__file__).parents[1]):
        if (root / _SUITE / "suite.toml").is_file():
            return root
    raise BadInputError(
        f"no {_SUITE} here: the demo needs a checkout of loop-harness; clone its repository and "
        "run `make demo` in it"
    )
