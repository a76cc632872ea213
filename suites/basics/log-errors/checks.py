"""Business rule of the log summary."""

import re


def validate(summary):
    """Times are complete and in order, and fit the number of errors."""
    for key in ("first", "last"):
        if not re.fullmatch("[0-9]{2}:[0-9]{2}:[0-9]{2}", summary[key]):
            return f"{key} must be a time as in 23:59:59"
    if summary["first"] > summary["last"]:
        return "first is later than last"
    if (summary["errors"] == 1) != (summary["first"] == summary["last"]):
        return f"errors is {summary['errors']}, which does not fit first and last"
    return None


def preview(summary):
    """Facts about the draft."""
    first, last = summary.get("first"), summary.get("last")
    same = "the same line" if first == last else "two different lines"
    return (
        f"{summary.get('errors')} lines of level ERROR; first and last are {same}: {first}, {last}."
    )
