"""Renders a run as one HTML file: no script, nothing to load, opens from `file://`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.report.view import LoadTrajectory, build_report
from harness.report.visible import visible
from harness.schema.results import RunRecord, TrialRecord

_TEMPLATES = Path(__file__).parent / "templates"


def render(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    load_trajectory: LoadTrajectory,
    *,
    baseline: str | None = None,
) -> str:
    """The whole page; write it as UTF-8.

    Args:
        run: what was planned.
        trials: the log, in any order.
        load_trajectory: gives a trial's trajectory; None says that its file is gone.
        baseline: the variant the others are compared with; None is the run's first.

    Raises:
        BadInputError: `baseline` is not a variant of the run, or has no trials.
    """
    report = build_report(run, trials, load_trajectory, baseline=baseline)
    css = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    # The page's own style sheet is all that a browser may use: what models wrote cannot even style.
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = _environment().get_template("page.html.j2")
    return page.render(report=report, css=Markup(css), policy=Markup(policy))


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _shown(value: object) -> object:
    """Every text of the page passes here before it is escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
