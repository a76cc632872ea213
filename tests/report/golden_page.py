"""The small run whose page is kept in golden/tiny.html.

Refresh it after a change of the page that is wanted, look at the difference, and commit it:

    .venv/bin/python -m tests.report.golden_page
"""

from __future__ import annotations

from pathlib import Path

from harness.report.html import render
from tests.report.sample_run import sample_run

GOLDEN = Path(__file__).parent / "golden" / "tiny.html"
REFRESH = ".venv/bin/python -m tests.report.golden_page"


def golden_page() -> str:
    """Two tasks under two variants."""
    sample = sample_run(
        tasks=("contact-card", "invoice-total"), variants=("baseline", "reflection"), repeats=2
    )
    return render(sample.run, sample.trials, sample.load)


if __name__ == "__main__":
    GOLDEN.write_text(golden_page(), encoding="utf-8")
