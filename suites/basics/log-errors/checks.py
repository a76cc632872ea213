"""Business rule of the log summary."""

import re


def validate(summary):
    """The time is a time, and there is one exactly where there are errors."""
    if not re.fullmatch("[0-9]{2}:[0-9]{2}:[0-9]{2}", summary["first_time"]):
        return "first_time must be written as in the log, HH:MM:SS"
    if summary["errors"] < 1:
        return f"errors is {summary['errors']}, but first_time names one"
    return None


def preview(summary):
    """Facts about the draft."""
    return f"{summary.get('errors')} lines of level ERROR, the first at {summary.get('first_time')}."
