#!/bin/bash
set -e
python3 - <<'END'
import json
from pathlib import Path


def bags(text):
    return {seed: int(count) for seed, count in (part.split() for part in text.split(", "))}


offers, wants = {}, {}
for path in sorted(Path("/app/letters").glob("*.txt")):
    letter = dict(line.split(": ") for line in path.read_text().splitlines())
    offers[letter["from"]] = bags(letter["offer"])
    wants[letter["from"]] = bags(letter["want"])

parcels = []
for seed in sorted({seed for offer in offers.values() for seed in offer}):
    # Who offers the seed as well has fewer to get it from: they come first.
    takers = sorted((t for t in wants if seed in wants[t]), key=lambda t: seed not in offers[t])
    for taker in takers:
        for giver in offers:
            count = min(offers[giver].get(seed, 0), wants[taker][seed])
            if giver != taker and count:
                parcels.append({"from": giver, "to": taker, "seed": seed, "bags": count})
                offers[giver][seed] -= count
                wants[taker][seed] -= count
Path("/app/parcels.json").write_text(json.dumps(parcels, indent=1))
END
