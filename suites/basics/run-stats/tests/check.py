"""Holds the folder and the answer against what was asked."""

import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

median = Path("/workspace/median.txt")
text = median.read_text().strip() if median.is_file() else ""
if text != "9.75":
    sys.exit(f"median.txt holds {text!r}")
if "9.75" not in answer:
    sys.exit(f"the answer does not say 9.75: {answer!r}")
