"""Holds what was handed in against the right result."""

import json
import sys
from pathlib import Path

path = Path("/logs/agent/output.json")
if not path.exists():
    sys.exit("no output was handed in")
output = json.loads(path.read_text())

expected = {"date": "2026-03-12", "start": "09:45", "end": "11:10", "minutes": 85}
sys.exit(None if output == expected else f"got {output}, expected {expected}")
