#!/bin/bash
set -e
test "$STYLE" = brackets
python3 - <<'END'
import re
from pathlib import Path

names = [Path(name).stem for name in Path("/root/tour.txt").read_text().split()]
numbers = {name: f"[{number}]" for number, name in enumerate(names, start=1)}
parts = []
for number, name in enumerate(names, start=1):
    title, text = Path(f"/root/labels/{name}.md").read_text().removeprefix("# ").split("\n", 1)
    text = re.sub(r"\{(.*?)\}", lambda m: numbers.get(m[1], "[not shown]"), text)
    parts.append(f"## {number}. {title}\n{text}")
Path("/root/guide.md").write_text("\n".join(parts))
END
