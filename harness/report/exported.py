"""What all exports share: files as text, safe names, ids, and when things happened."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from harness.cassette.request.canonical import writable
from harness.errors import BadInputError
from harness.schema.names import Name
from harness.schema.record import storable
from harness.schema.results import RunRecord, TrialRecord, Verdict
from harness.schema.suite import Price, Variant
from harness.schema.trajectory import Trajectory

AGENT = "loop-harness"
"""What ran the trials, as other tools name an agent."""

_IDS = uuid.uuid5(uuid.NAMESPACE_OID, AGENT)
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that an export consists of."""

    path: str
    """Relative to the folder of the export."""
    text: str


@dataclass(frozen=True, slots=True)
class Times:
    """When a trial was run.

    A replay takes as long as its recording took, and ended when it was replayed.
    """

    started: datetime
    agent_finished: datetime
    finished: datetime

    def at(self, seconds: float) -> str:
        """A moment of the agent's run, in ISO 8601."""
        return iso(self.started + timedelta(seconds=seconds))


def times_of(trial: TrialRecord, trajectory: Trajectory | None) -> Times | None:
    """When a trial was run; None where its log does not say."""
    if trial.finished_at is None:
        return None
    agent = _length_s(trajectory) if trajectory else 0
    started = trial.finished_at - timedelta(seconds=max(trial.duration_s, agent))
    return Times(started, started + timedelta(seconds=agent), trial.finished_at)


def _length_s(trajectory: Trajectory) -> float:
    """How long an agent ran; the last thing told may be a little later than its duration."""
    return max([trajectory.duration_s, *(event.at_s for event in trajectory.events[-1:])])


def iso(moment: datetime) -> str:
    """A moment in UTC, as ISO 8601 spells it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def json_text(value: Any) -> str:
    """Text of a JSON file; what no such file can hold is replaced."""
    return json.dumps(writable(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def plain_text(text: str) -> str:
    """Text of a plain file, with a line end after its last line."""
    return storable(text if text.endswith("\n") or not text else text + "\n")


def known(**values: Any) -> dict[str, Any]:
    """The values that there are: neither None nor empty."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value not in ("", (), [], {})
    }


def safe_name(name: str) -> str:
    """A file name: the name itself where it is a suite's, task's or variant's, else one made of it.

    Names in a log may be anything, since others write logs too.
    """
    if re.fullmatch(Name, name) and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name[:_LONGEST_NAME]).strip("-._")
    return f"{plain}-{digest}".lstrip("-")


def suite_path(run: RunRecord) -> str:
    """Where the suite is, from where the run was started; its name where that is elsewhere.

    A path of this machine would tell others nothing but who the user is.
    """
    path = PurePosixPath(run.suite_folder)
    if path.is_absolute() or ".." in path.parts or run.suite_folder.startswith("~"):
        return run.suite
    return str(path)


def portable(run: RunRecord, text: str) -> str:
    """Text without the suite's place on this machine, which messages for the user name."""
    path = PurePosixPath(run.suite_folder)
    # The shortest ones, as /work, may be meant otherwise, above all in what an agent did.
    is_telling = path.is_absolute() and len(path.parts) > 2
    return text.replace(str(path), run.suite) if is_telling else text


def stable_id(run: RunRecord, *parts: str) -> uuid.UUID:
    """An id that is the same whenever the run is exported."""
    whole = json.dumps([run.suite, run.run_id, iso(run.created_at), *parts])
    return uuid.uuid5(_IDS, whole)


def variant_of(run: RunRecord, trial: TrialRecord) -> Variant | None:
    """The trial's variant; None where run.json does not have it."""
    return next((one for one in run.variants if one.name == trial.variant), None)


def agent_name(run: RunRecord, variant: str) -> str:
    """What a variant is called where agents are compared: an agent of others as it was."""
    own = run.agents.get(variant)
    if own is None:
        return variant if run.imported else f"{AGENT}-{variant}"
    # Tables tell agents and models apart: one that is there twice needs its variant's name.
    model = _models(run).get(variant)
    alike = [
        name
        for name, one in run.agents.items()
        if (one.name, _models(run).get(name)) == (own.name, model)
    ]
    return own.name if len(alike) == 1 else f"{own.name}-{variant}"


def _models(run: RunRecord) -> dict[str, str]:
    return {variant.name: variant.model.name for variant in run.variants}


def agent_version(run: RunRecord, variant: str) -> str:
    """Version of what ran the trials."""
    if not run.imported:
        return run.versions.get(AGENT, "unknown")
    own = run.agents.get(variant)
    return own.version if own and own.version else "unknown"


def provider_of(run: RunRecord, variant: Variant) -> str:
    """Who gave the model, in the words of whoever ran it."""
    own = run.agents.get(variant.name)
    return own.provider if own and own.provider else variant.model.provider


def settings_of(run: RunRecord, variant: Variant | None) -> dict[str, Any]:
    """How a variant is set; nothing of trials that others ran, whose settings are not known."""
    if variant is None or run.imported:
        return {}
    return {
        "preset": variant.preset,
        "skills": variant.skills,
        **known(
            temperature=variant.model.temperature,
            loop=variant.loop.model_dump(mode="json", exclude_defaults=True),
        ),
    }


def price_of(run: RunRecord, trial: TrialRecord) -> Price | None:
    """What a single call is charged; None where the trial's cost was made otherwise.

    A task may set a model of its own, which run.json does not tell.
    """
    variant = variant_of(run, trial)
    price = variant.model.price if variant else None
    if price is None or trial.cost_usd is None:
        return None
    return price if abs(price.cost_usd(trial.usage) - trial.cost_usd) < 1e-9 else None


def rewards_of(trial: TrialRecord) -> dict[str, float] | None:
    """The verifier's rewards by name; None where there are none."""
    if trial.verdict is not None:
        return dict(trial.verdict.rewards) or None
    score = trial.scores.get("reward")
    if score is None or isinstance(score.value, str | bool | None):
        return None
    return {"reward": score.value}


def verdict_error(verdict: Verdict | None) -> str:
    """Why a verifier gave no reward; empty where it did, or was not asked."""
    return (verdict.error if verdict else None) or ""


def write_files(folder: Path, files: Iterable[ExportedFile]) -> int:
    """Write an export into a folder, over what an earlier one of the same run left.

    Returns:
        How many files there are.

    Raises:
        BadInputError: a file cannot be written.
    """
    count = 0
    for file in files:
        path = folder / file.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        except OSError as error:
            raise BadInputError(
                f"{path}: cannot be written ({error.strerror}); choose another folder with -o"
            ) from None
        count += 1
    return count
