"""Holds the folder and the answer against what was asked."""

import re
import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

total = Path("/workspace/total.txt")
text = total.read_text().strip().replace(",", ".") if total.is_file() else ""
if not re.fullmatch(r"49\.750*", text):
    sys.exit(f"total.txt holds {text!r}")
if not re.search(r"49[.,]75", answer):
    sys.exit(f"the answer does not say 49.75: {answer!r}")
