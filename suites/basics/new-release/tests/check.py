"""Holds the folder and the answer against what was asked."""

import re
import sys
from pathlib import Path

path = Path("/logs/agent/answer.txt")
answer = path.read_text() if path.exists() else ""

folder = Path("/workspace")
old = ["Changes", "- 1.4.1: two crashes fixed", "- 1.4.2: faster start"]
version = folder / "VERSION"
if not version.is_file() or version.read_text().strip() != "1.5.0":
    sys.exit("VERSION is not 1.5.0")
changelog = folder / "CHANGELOG.md"
lines = [line for line in changelog.read_text().splitlines() if line] if changelog.is_file() else []
if lines != [*old, "- 1.5.0: faster search"]:
    sys.exit(f"CHANGELOG.md has {lines}")
if (folder / "build.tmp").exists():
    sys.exit("build.tmp is still there")
count = len(changelog.read_text().splitlines())
if not re.search(rf"\b({count}|four)\b", answer.replace("1.5.0", ""), re.IGNORECASE):
    sys.exit(f"the answer does not say {count}: {answer!r}")
