#!/bin/bash
set -e
cat > /tmp/legs.py <<'END'
import json

legs, last, day, before = [], {}, 0, 0
for line in open("/app/radio.log"):
    time, _, bus, kind, place = line.split()
    minutes = int(time[:2]) * 60 + int(time[3:])
    day += minutes < before
    before = minutes
    now = day * 1440 + minutes
    was, where, then = last.get(bus, (None, None, None))
    if kind == "at" and was == "left":
        legs.append({"bus": bus, "from": where, "to": place, "minutes": now - then})
    last[bus] = (kind, place, now)
json.dump(legs, open("/app/legs.json", "w"), indent=1)
END
python3 /tmp/legs.py
