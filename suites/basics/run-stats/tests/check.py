"""Holds the folder and the answer against what was asked."""

import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

result = Path("/workspace/result.txt")
words = result.read_text().split() if result.is_file() else []
if words != ["count", "4", "mean", "13.5", "median", "9.75"]:
    sys.exit(f"result.txt holds {words}")
if "9.75" not in answer:
    sys.exit(f"the answer does not say 9.75: {answer!r}")
