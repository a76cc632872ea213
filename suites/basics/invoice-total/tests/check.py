"""Holds what was handed in against the right result."""

import json
import sys
from pathlib import Path

path = Path("/logs/agent/output.json")
if not path.exists():
    sys.exit("no output was handed in")
output = json.loads(path.read_text())

amounts = [40.0, 30.0, 9.5]
right = (
    output["invoice"].split()[-1].lstrip("#") == "2041"
    and len(output["amounts"]) == 3
    and all(abs(a - b) < 0.001 for a, b in zip(output["amounts"], amounts, strict=True))
    and abs(output["total"] - 79.5) < 0.001
)
sys.exit(None if right else f"got {output}, expected amounts {amounts} and total 79.5")
