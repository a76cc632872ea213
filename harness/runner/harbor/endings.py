"""Harbor's exceptions and our endings and verdicts."""

from __future__ import annotations

from harness.runner.harbor.result_file import HarborResult, Raised
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.results import Verdict

_OF_VERIFIER = frozenset(
    {
        "VerifierTimeoutError",
        "RewardFileNotFoundError",
        "RewardFileEmptyError",
        "VerifierOutputParseError",
    }
)
"""They say nothing about how the agent ended."""

_ENDINGS: dict[TerminationReason, tuple[str, ...]] = {
    TerminationReason.DURATION_EXCEEDED: ("AgentTimeoutError",),
    TerminationReason.CONTEXT_EXCEEDED: (
        "ContextLengthExceededError",
        "ContextWindowExceededError",
    ),
    TerminationReason.TRUNCATED: ("OutputLengthExceededError", "OutputTokenExceededError"),
    TerminationReason.REFUSAL: ("AgentSafetyRefusalError", "ContentPolicyViolationError"),
    TerminationReason.BUDGET_EXCEEDED: ("BudgetExceededError",),
    TerminationReason.CANCELLED: ("CancelledError",),
    TerminationReason.REPLAY_MISS: ("ReplayMissError",),
    TerminationReason.MODEL_ERROR: (
        *("ApiError", "ApiRateLimitError", "ApiInternalServerError", "ApiOverloadedError"),
        *("ApiConnectionClosedError", "ApiResponseStalledError", "UnknownApiError"),
        *("NetworkConnectionError", "ApiConnectionError", "ApiUsageLimitError", "RateLimitError"),
        *("InternalServerError", "ServiceUnavailableError", "APIConnectionError", "APIError"),
        *("Timeout", "BadRequestError", "UnprocessableEntityError", "UnsupportedParamsError"),
        *("APIResponseValidationError", "AgentAuthenticationError", "ModelNotFoundError"),
        *("ApiProviderResourceNotFoundError", "AuthenticationError", "PermissionDeniedError"),
        *("NotFoundError", "UnsupportedModelParametersError"),
    ),
    TerminationReason.INFRASTRUCTURE_ERROR: (
        *("InfrastructureError", "EnvironmentStartTimeoutError", "SandboxBuildFailedError"),
        "AgentSetupTimeoutError",
        *("HealthcheckError", "SandboxLikelyOutOfMemoryError", "MemoryLimitExceededError"),
        *("SSHAccessError", "GKEExecStreamClosedError", "GKEPodNotFoundError"),
        *("RuntimeRequestError", "AddTestsDirError", "DownloadVerifierDirError"),
        *("ServiceOperationsUnsupportedError", "VercelScopeError", "DspyImportError"),
        *("MissingExtraError", "RegradeError"),
    ),
    TerminationReason.ERROR: ("NonZeroAgentExitCodeError",),
}
"""What is raised where an agent ends so; one of another name is an error of the agent's, too."""

_BY_NAME = {name: ending for ending, names in _ENDINGS.items() for name in names}

WRITTEN: dict[TerminationReason, str] = {
    ending: names[0]
    for ending, names in _ENDINGS.items()
    # Harbor's agents that stop at a limit of their own end without an exception.
    if ending is not TerminationReason.BUDGET_EXCEEDED
}
"""What an ending is called in Harbor's format; those that are not here are no exceptions.

Harbor has no name for a replay miss and for an infrastructure error: it takes them for errors of
unknown cause.
"""


def ending_of(result: HarborResult) -> TerminationReason:
    """How the agent ended, as far as the exceptions say."""
    raised = result.raised
    if raised is None or raised.exception_type in _OF_VERIFIER:
        return TerminationReason.COMPLETED
    return _BY_NAME.get(raised.exception_type, TerminationReason.ERROR)


def error_of(result: HarborResult) -> str | None:
    """Why the agent did not end by itself."""
    return None if ending_of(result) is TerminationReason.COMPLETED else _told(result.raised)


def verdict_of(result: HarborResult, log: str) -> Verdict | None:
    """What the verifier said; None where it was not asked, or the ending is never scored."""
    if ending_of(result) in UNSCORED:
        return None
    raised = result.raised
    rewards = _rewards(result)
    if rewards:
        return Verdict(rewards=rewards, log=log)
    if raised is not None and raised.exception_type in _OF_VERIFIER:
        return Verdict(error=_told(raised), log=log)
    return None


def _rewards(result: HarborResult) -> dict[str, float]:
    """The trial's rewards; of a trial that has none of its own the means over its steps."""
    if result.verifier_result is not None and result.verifier_result.rewards:
        return dict(result.verifier_result.rewards)
    steps = [step.verifier_result for step in result.step_results or () if step.verifier_result]
    found = [step.rewards for step in steps if step.rewards]
    names = dict.fromkeys(name for rewards in found for name in rewards)
    return {name: sum(rewards.get(name, 0.0) for rewards in found) / len(found) for name in names}


def _told(raised: Raised | None) -> str | None:
    if raised is None:
        return None
    return ": ".join(part for part in (raised.exception_type, raised.exception_message) if part)
