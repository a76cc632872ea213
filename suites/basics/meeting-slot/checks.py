"""Business rule of the meeting."""

import re


def _minutes(time):
    match = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])", str(time))
    return int(match[1]) * 60 + int(match[2]) if match else None


def validate(meeting):
    """Start, end and length agree."""
    start, end = _minutes(meeting["start"]), _minutes(meeting["end"])
    if start is None or end is None:
        return "start and end must be written HH:MM, as in 08:30"
    if end - start != meeting["minutes"]:
        return f"from start to end are {end - start} minutes, but minutes is {meeting['minutes']}"
    return None


def preview(meeting):
    """Facts about the draft."""
    start, end = _minutes(meeting.get("start")), _minutes(meeting.get("end"))
    if start is None or end is None:
        return "start or end is not written HH:MM."
    return (
        f"From {meeting['start']} to {meeting['end']} are {end - start} minutes;"
        f" you wrote {meeting.get('minutes')}."
    )
