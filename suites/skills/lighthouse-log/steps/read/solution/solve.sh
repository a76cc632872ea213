#!/bin/bash
set -e
python3 - <<'END'
import json
import re

COLOURS = {"W": "white", "R": "red", "G": "green"}
lights = {}
for line in open("lights.txt"):
    found = re.match(r"(.+?)\s{2,}(\w+?)(?:\((\d+)\))? ([WRG]) (\d+)s", line)
    if found:
        name, kind, group, colour, period = found.groups()
        light = {"kind": kind, "group": int(group or 1), "colour": COLOURS[colour]}
        lights[name] = light | {"period": int(period)}
json.dump(lights, open("lights.json", "w"), indent=1)
END
