"""Harbor's trials on disk: finding their folders, and reading one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cassette.convert.chat_calls import Transcript
from harness.cassette.convert.conversations import read_transcript
from harness.errors import BadInputError
from harness.loader.reading import read_text, validated
from harness.runner.harbor.result_file import HarborResult

RESULT = "result.json"
_DEEPEST = 4
"""Folders below the one that is named: a trial is in a job, and a job among others."""
_LOG_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class HarborTrial:
    """A trial, as its folder tells it; secrets are still in it."""

    folder: Path
    result: HarborResult
    conversations: tuple[Transcript, ...]
    """Of its steps, in order; none where the agent left none."""
    log: str
    """End of what the verifier printed."""

    @property
    def job(self) -> str:
        """What it was run as part of; empty where nothing says."""
        named = (self.result.config.trials_dir or "").replace("\\", "/").rstrip("/")
        return named.rpartition("/")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """What globs of `--variant` are held against."""
        folder, name = self.folder, self.result.trial_name
        beside = f"{folder.absolute().parent.name}/{folder.name}"
        return (folder.name, folder.as_posix(), beside, name, f"{self.job}/{name}")


def read_trials(paths: Sequence[Path]) -> tuple[list[HarborTrial], list[Path]]:
    """All trials below some folders, each once, and the folders of those that never ended.

    Raises:
        BadInputError: there is none, or a file is damaged, none of Harbor's or a link out of its
            trial; the text names file and key.
    """
    folders: dict[Path, Path] = {}
    unfinished: list[Path] = []
    for path in paths:
        found = list(_folders(path, unfinished))
        if not found:
            raise BadInputError(
                f"{path}: no trial of Harbor's is here; name the folder of a trial, with its"
                f" {RESULT}, or of a job"
            )
        folders |= {folder.resolve(): folder for folder in found if folder.resolve() not in folders}
    return [_read(folder) for folder in folders.values()], unfinished


def _folders(path: Path, unfinished: list[Path], depth: int = 0) -> Iterator[Path]:
    """The trials at a folder or below it; what is in a trial is none."""
    if path.name == RESULT and path.is_file():
        path = path.parent
    if not path.is_dir():
        return
    result = path / RESULT
    _hold_inside(result, path)
    # A job's result has no trial's name.
    if result.is_file() and "trial_name" in (data := _json(result)):
        yield path
    elif result.is_file() and "stats" not in data and "n_total_trials" not in data:
        raise BadInputError(f"{result}: trial_name: missing; this is no result of a Harbor trial")
    elif not result.is_file() and (path / "trial.log").is_file():
        unfinished.append(path)
    elif depth < _DEEPEST:
        for child in sorted(path.iterdir()):
            if child.is_dir() and not child.is_symlink():
                yield from _folders(child, unfinished, depth + 1)


def _read(folder: Path) -> HarborTrial:
    path = folder / RESULT
    result = validated(HarborResult, _json(path), where=str(path))
    output = folder / "verifier" / "test-stdout.txt"
    steps = [Path("steps", step.step_name) for step in result.step_results or ()]
    told = [folder / part / "agent" / "trajectory.json" for part in (Path(), *steps)]
    for part in (path, output, *told):
        _hold_inside(part, folder)
    return HarborTrial(
        folder,
        result,
        tuple(read_transcript(path) for path in told if path.is_file()),
        _end_of(output),
    )


def _hold_inside(path: Path, folder: Path) -> None:
    """Refuse links out of a trial, which may come from anywhere, and what they lead to is ours."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise BadInputError(
            f"{path}: a link out of the trial's folder; put what it leads to in its place"
        )


def _end_of(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4 * _LOG_CHARACTERS))
        return file.read().decode(errors="replace")[-_LOG_CHARACTERS:]


def _json(path: Path) -> dict[str, object]:
    try:
        data = json.loads(read_text(path, purpose="what came of a trial"))
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{path}: not JSON: {error}; the trial may still be running") from None
    if not isinstance(data, dict):
        raise BadInputError(f"{path}: not a result of Harbor's: expected an object")
    return data
