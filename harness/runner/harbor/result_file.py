"""A trial's result.json as Harbor writes it: what is read of it, whatever else stands there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat
from pydantic_core import PydanticCustomError

from harness.cassette.convert.times import in_utc
from harness.runner.rewards import MOST


class _Read(BaseModel):
    """The part that is read; keys of any version may stand beside it."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _in_our_time(moment: datetime) -> datetime:
    """Other years are none of a trial, and cannot be told in each zone."""
    try:
        found = in_utc(moment)
    except ValueError:
        found = None
    if found is None or not _YEARS[0] <= found.year <= _YEARS[1]:
        raise PydanticCustomError(
            "moment",
            "must be in the years {first} to {last}",
            {"first": _YEARS[0], "last": _YEARS[1]},
        )
    return found


def _folder_name(name: str) -> str:
    if name in ("", ".", "..") or any(mark in name for mark in "/\\\0"):
        raise PydanticCustomError("step_name", "must be the name of a folder under steps/")
    return name


_YEARS = (2000, 2200)
_Moment = Annotated[datetime, AfterValidator(_in_our_time)]
_Reward = Annotated[float, Field(ge=-MOST, le=MOST)]
_Count = Annotated[int, Field(ge=0, le=10**15)]


class Timing(_Read):
    """When a part of a trial was run."""

    started_at: _Moment | None = None
    finished_at: _Moment | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took; None where it is not known."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


class Raised(_Read):
    """An exception that ended a trial, or a part of it."""

    exception_type: str
    exception_message: str = ""


class AgentResult(_Read):
    """What the agent used."""

    n_input_tokens: _Count | None = None
    """Those that were read from a cache included."""
    n_cache_tokens: _Count | None = None
    n_output_tokens: _Count | None = None
    cost_usd: FiniteFloat | None = Field(default=None, ge=0, le=1e12)


class VerifierResult(_Read):
    """What the verifier said."""

    rewards: dict[str, _Reward] | None = None


class StepResult(_Read):
    """One step of a trial of several."""

    step_name: Annotated[str, AfterValidator(_folder_name)]
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: Raised | None = None
    agent_execution: Timing | None = None


class ModelInfo(_Read):
    """The model, and who gives it."""

    name: str
    provider: str | None = None


class AgentInfo(_Read):
    """The agent."""

    name: str
    version: str = ""
    model_info: ModelInfo | None = None


class _AgentConfig(_Read):
    model_name: str | None = None


class _TrialConfig(_Read):
    trials_dir: str | None = None
    agent: _AgentConfig = _AgentConfig()


class HarborResult(_Read):
    """All that is read of a result.json."""

    task_name: str = Field(min_length=1)
    trial_name: str = Field(min_length=1)
    source: str | None = None
    task_checksum: str = ""
    config: _TrialConfig = _TrialConfig()
    agent_info: AgentInfo
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: Raised | None = None
    started_at: _Moment | None = None
    finished_at: _Moment | None = None
    agent_execution: Timing | None = None
    step_results: tuple[StepResult, ...] | None = None

    @property
    def model(self) -> ModelInfo:
        """The model's name without its provider, where it says both."""
        if self.agent_info.model_info is not None:
            return self.agent_info.model_info
        named = self.config.agent.model_name or "unknown"
        provider, _, name = named.partition("/")
        return ModelInfo(name=name, provider=provider) if name else ModelInfo(name=named)

    @property
    def used(self) -> AgentResult:
        """What the agent used over all steps."""
        parts = [self.agent_result] if self.agent_result else self._of_steps()
        return AgentResult(
            n_input_tokens=_total(part.n_input_tokens for part in parts),
            n_cache_tokens=_total(part.n_cache_tokens for part in parts),
            n_output_tokens=_total(part.n_output_tokens for part in parts),
            cost_usd=_total(part.cost_usd for part in parts),
        )

    def _of_steps(self) -> list[AgentResult]:
        return [step.agent_result for step in self.step_results or () if step.agent_result]

    @property
    def raised(self) -> Raised | None:
        """The first exception: the trial's, else that of a step."""
        steps = (step.exception_info for step in self.step_results or ())
        return next((one for one in (self.exception_info, *steps) if one is not None), None)

    @property
    def agent_s(self) -> float:
        """How long the agent worked."""
        steps = [step.agent_execution for step in self.step_results or ()]
        known = [one.seconds for one in (self.agent_execution, *steps) if one is not None]
        return sum(seconds for seconds in known if seconds is not None)

    @property
    def whole_s(self) -> float:
        """How long all of the trial took; the agent's time where only that is known."""
        whole = Timing(started_at=self.started_at, finished_at=self.finished_at).seconds
        return self.agent_s if whole is None else whole

    @property
    def ended(self) -> datetime | None:
        """When the trial was over, or at least had begun."""
        return self.finished_at or self.started_at


def _total(values: Iterable[float | int | None]) -> float | int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
