"""docs/exports.md names the exceptions that are exported."""

from __future__ import annotations

import re

from harness.schema.loop_config import TerminationReason
from tests.docs.pages import ROOT
from tests.report.exports import every_ending, results

PAGE = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")


def test_the_page_names_the_exception_of_every_ending_that_has_one():
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| `")]
    told = {
        ending: set(re.findall(r"`(\w+)`", names))
        for endings, names in rows
        for ending in re.findall(r"`(\w+)`", endings)
        if ending in set(TerminationReason)
    }
    found = {}
    for result in results(every_ending()).values():
        if result["exception_info"] is not None:
            reason = result["agent_result"]["metadata"]["termination_reason"]
            found[reason] = result["exception_info"]["exception_type"]
    assert found.keys() == told.keys()
    for reason, name in found.items():
        assert name in told[reason]
