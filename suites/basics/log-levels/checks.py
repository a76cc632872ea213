"""Business rule of the log summary."""


def validate(counts):
    """Every line has exactly one level."""
    total = counts["info"] + counts["warn"] + counts["error"]
    if total != counts["lines"]:
        return (
            f"info + warn + error is {total}, but lines is {counts['lines']}:"
            " count each level again, then call output again"
        )
    return None


def preview(counts):
    """Facts about the draft."""
    total = sum(counts.get(level, 0) for level in ("info", "warn", "error"))
    verdict = "equal" if total == counts.get("lines") else "NOT EQUAL, so a count is wrong"
    return f"info + warn + error = {total}; lines = {counts.get('lines')}: {verdict}."
