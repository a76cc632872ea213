"""What may be the name of a suite, a task or a variant."""

from __future__ import annotations

Name = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""Names become file names and parts of trial ids."""
