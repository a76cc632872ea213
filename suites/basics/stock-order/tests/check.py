"""Holds what was handed in against the right result."""

import json
import sys
from pathlib import Path

path = Path("/logs/agent/output.json")
if not path.exists():
    sys.exit("no output was handed in")
output = json.loads(path.read_text())

orders = sorted((line["item"], line["quantity"]) for line in output["orders"])
right = orders == [("bolts", 20), ("washers", 10)] and output["total"] == 30
sys.exit(None if right else f"got {output}, expected 20 bolts and 10 washers")
