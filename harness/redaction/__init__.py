"""Secrets in texts and values: known ones, and what has the shape of a credential."""

from harness.redaction.redactor import PLACEHOLDER as PLACEHOLDER
from harness.redaction.redactor import Found as Found
from harness.redaction.redactor import Redactor as Redactor
from harness.redaction.redactor import unpacked as unpacked
