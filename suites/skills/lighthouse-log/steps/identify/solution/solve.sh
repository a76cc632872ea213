#!/bin/bash
set -e
python3 - <<'END'
import json

seconds = [float(word) for word in open("watch.txt").read().split(":")[1].split()]
lights = json.load(open("lights.json"))
for name, light in lights.items():
    group, period = light["group"], light["period"]
    begins = seconds[::group]
    regular = all(after - before == period for before, after in zip(begins, begins[1:]))
    if light["colour"] == "white" and light["kind"] == "Fl" and regular:
        open("seen.txt", "w").write(name + "\n")
END
