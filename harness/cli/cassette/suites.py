"""What suites say about cassettes: which there should be, of what version, with which variants."""

from __future__ import annotations

from collections.abc import Sequence

import click

from harness.cassette.audit import Cells, Expected
from harness.loader.suite import load_suite
from harness.runner.plan import plan, suite_folder

suite_option = click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="SUITE",
    help="Also hold its cassettes against this suite; repeatable.",
)


def cells_of(suites: Sequence[str]) -> Cells | None:
    """The cassettes that suites have; None where no suite is named.

    Raises:
        BadInputError: a suite cannot be loaded.
    """
    if not suites:
        return None
    return {
        (cell.suite, cell.task.name, cell.repeat): Expected(
            cell.task.digest, frozenset(spec.variant.name for spec in cell.specs)
        )
        for name in suites
        for cell in plan(load_suite(suite_folder(name)))
    }
