"""Holds what was handed in against the right result."""

import json
import sys
from pathlib import Path

path = Path("/logs/agent/output.json")
if not path.exists():
    sys.exit("no output was handed in")
output = json.loads(path.read_text())

expected = {"date": "2026-03-12", "start": "09:50", "end": "10:35", "minutes": 45}
sys.exit(None if output == expected else f"got {output}, expected {expected}")
