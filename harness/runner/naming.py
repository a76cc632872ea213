"""Names that files of others give, as suites, tasks and variants may have them."""

from __future__ import annotations

import re

from harness.schema.names import Name

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(name: str) -> str:
    """The name with a dash for whatever no name may have."""
    plain = _OTHER.sub("-", name).strip("-._")
    return plain if re.fullmatch(Name, plain) else "unnamed"
