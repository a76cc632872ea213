"""Stands in for pip where there is no network."""

import sys

# The parser of requirements that pip itself brings.
sys.path.insert(0, "/opt/pip/pip/_vendor")
