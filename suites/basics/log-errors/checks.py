"""Business rule of the log summary."""

import re


def validate(summary):
    """The time is a time, and there is one exactly where there are errors."""
    if not re.fullmatch("[0-9]{2}:[0-9]{2}:[0-9]{2}", summary["first"]):
        return "first must be a time as in 23:59:59"
    if summary["errors"] < 1:
        return f"errors is {summary['errors']}, but first names one"
    return None


def preview(summary):
    """Facts about the draft."""
    return f"{summary.get('errors')} lines of level ERROR, the first of them at {summary.get('first')}."
