"""How a trial ended in Harbor's words: the exceptions that its reader knows by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.exported import verdict_error
from harness.runner.harbor.endings import WRITTEN
from harness.runner.stage import NOT_SET_UP
from harness.schema.loop_config import TerminationReason
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.trajectory import Trajectory

# Harbor's agents do not tell a tool's error from their own.
_OF_ENDING = WRITTEN | {TerminationReason.TOOL_ERROR: WRITTEN[TerminationReason.ERROR]}

_OF_MODEL_ERROR = {
    "RateLimitedError": "ApiRateLimitError",
    "AuthenticationError": "AgentAuthenticationError",
    "OverloadedError": "ApiOverloadedError",
    "MalformedAnswerError": "APIResponseValidationError",
}

_OF_VERIFIER = (
    ("did not end within", "VerifierTimeoutError"),
    ("neither reward.json nor reward.txt", "RewardFileNotFoundError"),
    ("number: ''", "RewardFileEmptyError"),
    (NOT_SET_UP, "AddTestsDirError"),
)
"""What the verifier's errors say; the others are about a file that cannot be understood."""

_OF_MACHINE = (
    ("the healthcheck ", "HealthcheckError"),
    ("of the Dockerfile did not end in time", "EnvironmentStartTimeoutError"),
    ("setup.sh did not end within", "EnvironmentStartTimeoutError"),
    ("of the Dockerfile failed", "SandboxBuildFailedError"),
    ("cannot install ", "SandboxBuildFailedError"),
)
"""What is said where a machine could not be made."""

_NAMED = re.compile(r"(?P<name>[A-Za-z]\w*(?:Error|Timeout)): (?P<message>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Raised:
    """What Harbor would have raised."""

    name: str
    message: str


def raised(run: RunRecord, trial: TrialRecord, trajectory: Trajectory | None) -> Raised | None:
    """The exception of a trial; the agent's goes before the verifier's, as in Harbor."""
    name = _of_agent(trial, trajectory)
    failed = verdict_error(trial.verdict)
    if name is not None:
        message = trial.error or trial.termination_reason.value.replace("_", " ")
    elif failed:
        name, message = _of_verifier(failed), failed
    else:
        return None
    if run.imported and (named := _NAMED.match(message)):
        # It was Harbor's own before it was imported.
        return Raised(named["name"], named["message"])
    return Raised(name, message)


def _of_agent(trial: TrialRecord, trajectory: Trajectory | None) -> str | None:
    reason = trial.termination_reason
    asked_in_vain = reason in (
        TerminationReason.MODEL_ERROR,
        TerminationReason.INFRASTRUCTURE_ERROR,
    )
    if asked_in_vain and trajectory is not None:
        failed = (event for event in reversed(trajectory.events) if event.kind == "model_error")
        last = next((event for event in failed if event.data.get("error") == trial.error), None)
        if last is not None:
            return _OF_MODEL_ERROR.get(str(last.data.get("type")), _OF_ENDING[reason])
    if reason is TerminationReason.INFRASTRUCTURE_ERROR:
        return _by_words(trial.error or "", _OF_MACHINE) or _OF_ENDING[reason]
    return _OF_ENDING.get(reason)


def _of_verifier(said: str) -> str:
    return _by_words(said, _OF_VERIFIER) or "VerifierOutputParseError"


def _by_words(said: str, names: Sequence[tuple[str, str]]) -> str | None:
    return next((name for words, name in names if words in said), None)
