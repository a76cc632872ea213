"""The committed baseline as a file: reports/baselines/SUITE.json."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from harness.errors import BadInputError
from harness.runner.log import first_problem
from harness.schema.results import Baseline

FOLDER = "baselines"


def baseline_file(reports: Path, suite: str) -> Path:
    """Where a suite's baseline is."""
    return reports / FOLDER / f"{suite}.json"


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        BadInputError: there is none, or it cannot be used.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(
            f"{path}: no such baseline; make one from a finished run: harness baseline update last"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: cannot be read ({error})") from None
    try:
        return Baseline.model_validate_json(text)
    except ValidationError as error:
        raise BadInputError(
            f"{path}: {first_problem(error)}; restore it, or write it again from a run: "
            "harness baseline update last"
        ) from None


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline in one step; the old one stays whole until then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.partial")
    unfinished.write_text(baseline.model_dump_json(indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
