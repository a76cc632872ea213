"""A folder of agents, and models that answer them."""

from __future__ import annotations

from pathlib import Path

COUNTER = """
name = "counter"
description = "Counts boats."
system = "Count the boats."
preset = "sigil"
tools = ["boats:query", "list_dir"]
workspace = "harbour"
skills = ["skills/counting"]
active_skills = ["counting"]

[model]
provider = "openai"
name = "m-1"
temperature = 0.5

[loop]
max_iterations = 4

[output]
schema = { type = "object", properties = { boats = { type = "integer" } }, required = ["boats"] }
validators = ["boats:some"]

[inputs.harbour]
description = "Which harbour."

[inputs.day]
required = false
"""

BOATS = '''
def query(harbour: str) -> int:
    """Counts the boats in a harbour."""
    return {"north": 4}[harbour]


def some(output):
    return None if output["boats"] else "there are always boats"
'''

SKILL = """---
name: counting
description: How to count.
---
Count twice.
"""

TALKER = """
name = "talker"
system = "Talk."
models = ["m-9"]
scopes = ["staff"]
inputs.topic = {}

[model]
provider = "openai"
name = "m-2"
"""


def write_agents(folder: Path) -> Path:
    """Two agents with all that they need."""
    (folder / "harbour").mkdir()
    (folder / "harbour" / "log.txt").write_text("4 boats\n")
    (folder / "skills" / "counting").mkdir(parents=True)
    (folder / "skills" / "counting" / "SKILL.md").write_text(SKILL)
    (folder / "boats.py").write_text(BOATS)
    (folder / "counter.toml").write_text(COUNTER)
    (folder / "talker.toml").write_text(TALKER)
    return folder
