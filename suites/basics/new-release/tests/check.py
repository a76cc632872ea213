"""Holds the folder and the answer against what was asked."""

import re
import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

folder = Path("/workspace")
expected = {
    "VERSION": "1.5.0",
    "search.py": "print('searching')",
}
files = {path.name: path.read_text().strip() for path in folder.iterdir() if path.is_file()}
if files != expected:
    sys.exit(f"the folder has {files}")
if not all(re.search(rf"\b{re.escape(name)}\b", answer) for name in expected):
    sys.exit(f"the answer does not name every file: {answer!r}")
