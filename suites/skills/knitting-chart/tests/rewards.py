"""Turns the report of the tests into rewards."""

import json
from pathlib import Path

LOGS = Path("/logs/verifier")
tests = json.loads((LOGS / "ctrf.json").read_text())["results"]["tests"]
passed = {test["name"]: test["status"] == "passed" for test in tests}
rows = [good for name, good in passed.items() if "test_a_row" in name]
rewards = {
    "reward": float(all(passed.values())),
    "rows": sum(rows) / len(rows),
    "form": float(all(good for name, good in passed.items() if "test_a_row" not in name)),
}
(LOGS / "reward.json").write_text(json.dumps(rewards))
