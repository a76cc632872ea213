"""Holds high_waters.csv against the peaks, which are given above the gauge's zero."""

import os
import sys
from pathlib import Path

PEAKS = {
    "2025-03-14T11:00": 5.59,
    "2025-03-15T00:00": 5.62,
    "2025-03-15T12:00": 5.55,
}

assert os.environ["GAUGE_KEEPER"] == "the harbour's office"
assert os.environ["GAUGE_TITLE"] == "The gauge in the harbour"
assert Path("STATION").read_text() == "harbour\n", "the verifier begins in the task's folder"
assert os.environ["GAUGE_DATUM"] == os.environ["EXPECT_DATUM"]

path = Path("/srv/gauge/high_waters.csv")
if not path.is_file():
    sys.exit("high_waters.csv was not written")
datum = float(os.environ["EXPECT_DATUM"])
expected = ["time,height", *(f"{time},{peak - datum:.2f}" for time, peak in PEAKS.items())]
found = path.read_text().split()
sys.exit(None if found == expected else f"expected {expected}, found {found}")
