"""Finding a run, and writing its report."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from harness.errors import BadInputError
from harness.loader.reading import known
from harness.report.html import render
from harness.runner.log import RUN_FILE, RunLog

REPORTS = Path("reports")
REPORT_FILE = "report.html"
LAST = "last"


def is_run(argument: str) -> bool:
    """Whether a command line's word names a run rather than a suite."""
    folders = (Path(argument), REPORTS / argument)
    if not argument.strip():
        return False
    return argument == LAST or any((folder / RUN_FILE).is_file() for folder in folders)


def find_run(argument: str) -> RunLog:
    """The run that is named by its folder, by its id under reports/, or as `last`.

    Raises:
        BadInputError: there is none.
    """
    if not argument.strip():
        raise BadInputError(
            f"{argument!r} names no run; give a run's folder, its id under {REPORTS}/, or `last`"
        )
    if argument == LAST:
        runs = _by_date()
        if not runs:
            raise BadInputError(f"{REPORTS}/ holds no run yet; make one with `harness run SUITE`")
        return RunLog(runs[-1])
    for folder in (Path(argument), REPORTS / argument):
        if (folder / RUN_FILE).is_file():
            return RunLog(folder)
    if Path(argument).is_dir():
        return RunLog(Path(argument))
    names = [folder.name for folder in _by_date()[-5:]]
    raise BadInputError(
        f"{argument!r} is neither a run's folder nor an id under {REPORTS}/; "
        f"{known(names, argument)}"
    )


def _by_date() -> list[Path]:
    """Run folders under reports/, the oldest first."""
    dated = [(_created_at(path), path.parent) for path in REPORTS.glob(f"*/{RUN_FILE}")]
    return [folder for _, folder in sorted(dated)]


def _created_at(path: Path) -> datetime:
    try:
        return datetime.fromisoformat(json.loads(path.read_text(encoding="utf-8"))["created_at"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise BadInputError(
            f"{path}: cannot be read ({error}); remove the folder, or name a run instead of `last`"
        ) from None


def write_report(log: RunLog, path: Path | None = None) -> Path:
    """Render a run as HTML, into its own folder unless another file is named."""
    target = path or log.folder / REPORT_FILE
    page = render(log.run(), log.trials(), log.trajectory)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{target}: cannot be written ({error.strerror})") from None
    return target
