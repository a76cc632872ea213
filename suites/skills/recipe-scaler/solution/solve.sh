#!/bin/bash
set -euo pipefail
cd /workspace
cat > /tmp/shop.py <<'END'
import json
import math
from fractions import Fraction
from pathlib import Path

import yaml

units = yaml.safe_load(Path("units.yaml").read_text())
needed = {}
for path in Path("recipes").glob("*.yaml"):
    recipe = yaml.safe_load(path.read_text())
    for amount, unit, name in recipe["ingredients"]:
        (size,) = units[unit].values()
        scaled = Fraction(str(amount)) * Fraction(str(size)) * 60 / recipe["serves"]
        needed[name] = needed.get(name, 0) + scaled
shopping = {name: math.ceil(amount) for name, amount in needed.items()}
Path("shopping.json").write_text(json.dumps(shopping))
END
python /tmp/shop.py
