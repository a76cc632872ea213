"""What suites say about cassettes: which there should be, of what version, with which variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from harness.cassette.care.cells import Cells, Expected
from harness.loader.suite import load_suite
from harness.runner.plan import plan, public_names, suite_folder

suite_option = click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="SUITE",
    help="Also hold its cassettes against this suite; repeatable.",
)


@dataclass(frozen=True, slots=True)
class Said:
    """What the named suites say."""

    cells: Cells | None
    """The cassettes that they have; None where no suite is named."""
    names: frozenset[str]
    """What tasks, variants and tools are called: no secrets, whatever else has that value."""
    secrets: tuple[str, ...]
    """Patterns of their own secrets."""


def said_by(arguments: Sequence[str]) -> Said:
    """Load the named suites.

    Raises:
        BadInputError: one cannot be loaded.
    """
    suites = [load_suite(suite_folder(argument), needs_model=False) for argument in arguments]
    cells = {
        (cell.suite, cell.task.name, cell.repeat): Expected(
            cell.task.digest, frozenset(spec.variant.name for spec in cell.specs)
        )
        for suite in suites
        for cell in plan(suite)
    }
    return Said(
        cells if suites else None,
        frozenset(name for suite in suites for name in public_names(suite)),
        tuple(pattern for suite in suites for pattern in suite.recording.redact),
    )
