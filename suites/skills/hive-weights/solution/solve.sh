#!/bin/bash
set -e
python3 - <<'END'
import csv
import json
from collections import defaultdict

readings = defaultdict(list)
with open("/root/data/scales.csv") as file:
    for row in csv.DictReader(file):
        readings[row["hive"]].append((row["date"], round(float(row["kg"]) * 10)))

flow = {}
for hive, points in readings.items():
    weights = [weight for _, weight in sorted(points)]
    changes = [after - before for before, after in zip(weights, weights[1:])]
    flow[hive] = sum(change for change in changes if abs(change) < 40) / 10

with open("/root/flow.json", "w") as file:
    json.dump(flow, file)
END
