"""Holds the folder and the answer against what was asked."""

import re
import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

folder = Path("/workspace")
photos = ["beach.jpg", "dinner.jpg", "tower.jpg"]
found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
if found != sorted(["jpg-notes.txt", *(f"photos/{name}" for name in photos)]):
    sys.exit(f"the folder has {found}")
if not re.search(r"\b(3|three)\b", answer, re.IGNORECASE):
    sys.exit(f"the answer does not say 3: {answer!r}")
