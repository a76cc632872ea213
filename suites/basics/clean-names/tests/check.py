"""Holds the folder and the answer against what was asked."""

import re
import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

clean = Path("/workspace/clean.txt")
names = clean.read_text().splitlines() if clean.is_file() else None
if names != ["emma", "liam", "mia", "noah", "olivia"]:
    sys.exit(f"clean.txt has {names}")
if not re.search(r"\b(5|five)\b", answer, re.IGNORECASE):
    sys.exit(f"the answer does not say 5: {answer!r}")
