"""The run log: one run, its trials, and the committed baseline they are held against."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from harness.schema.loop_config import TerminationReason
from harness.schema.presets import PresetName
from harness.schema.record import Record
from harness.schema.recording import Front, Pace
from harness.schema.suite import Variant
from harness.schema.suite_file import Name
from harness.schema.trajectory import UsageTotal

RecordMode = Literal["none", "once", "new_episodes", "all"]
ToolsMode = Literal["replay", "live"]
Outcome = Literal["passed", "failed"]
Untold = Literal["iterations", "model_calls", "tool_calls"]


class Verdict(Record):
    """What a task's verifier said about the folder and answer an agent left behind."""

    rewards: dict[str, float] = Field(default_factory=dict)
    """Finite numbers by name; a single reward is called `reward`."""
    error: str | None = None
    """Why there is no reward: a verifier that failed is an error, never a 0."""
    log: str = ""
    """End of what the verifier printed."""


class Score(Record):
    """One scorer's view of one trial."""

    value: float | str | bool | None
    """None where the scorer does not apply."""
    explanation: str = ""


class MissCause(Record):
    """Why replay had no answer."""

    cause: str
    """What is not as it was recorded: `the system prompt`, `the tools`, `message 3 (user)`."""
    difference: str = ""
    """It as a unified diff, or in words; empty where there is nothing to hold it against."""


class ToolChange(Record):
    """A tool that ran again and gave something else than what was recorded, and was fed."""

    summary: str
    """The call, and where the results part, in one line."""
    difference: str
    """Both results as a unified diff."""


class RequestChange(Record):
    """A model call that said something else than the recorded one, whose answer it was given."""

    call: int
    """Counted from 1."""
    cause: str
    """What is not as it was recorded: `message 3 (user)`."""
    difference: str
    """It as a unified diff."""


class TrialRecord(Record):
    """One line of trials.jsonl."""

    trial_id: str
    """`task/variant/repeat`, unique within a run."""
    suite: str
    task: str
    variant: str
    repeat: int
    """Counted from 0."""
    termination_reason: TerminationReason
    outcome: Outcome | None
    """The verifier's word; None where there is none."""
    verdict: Verdict | None = None
    """What the verifier said, in full; None where it was not asked."""
    iterations: int
    attempts: int
    model_calls: int
    tool_calls_made: int
    tools_used: tuple[str, ...]
    validation_failures: int
    confirmed: bool | None = None
    usage: UsageTotal
    cost_usd: float | None
    duration_s: float
    finished_at: datetime | None = None
    """When it ended on this machine: a replay tells when it was replayed."""
    scores: dict[str, Score]
    error: str | None = None
    """The explained miss or failure; None when the run ended by itself."""
    response_models: tuple[str, ...] = ()
    mixed: bool = False
    """Whether its answers come from different models."""
    served: int = 0
    """Model calls answered from the cassette."""
    recorded: int = 0
    """Model calls that went to a live model."""
    calls_with_retries: int | None = None
    """Of a run with faults: its model calls as faults count them, a client's retries included."""
    tool_differences: int = 0
    """Tools that ran again and gave something else than what was recorded, and was fed."""
    first_tool_difference: str | None = None
    """The first of them, in words."""
    tool_changes: tuple[ToolChange, ...] = ()
    """All of them, in the order of the calls; the first 100."""
    request_differences: int = 0
    """Of a recording that is replayed in order: model calls that said something else than it."""
    request_changes: tuple[RequestChange, ...] = ()
    """The first 10 of them."""
    unused: int = 0
    """Of a recording that is replayed in order: answers that were never asked for."""
    miss: MissCause | None = None
    """Of a trial that ended in a replay miss."""
    untold: tuple[Untold, ...] = ()
    """Of a trial that others ran: numbers that its files do not tell, and that are 0 here."""
    ignored: tuple[str, ...] = ()
    """What the task's files ask for and only a container engine does, and what stood in for it."""
    sandbox: str | None = None
    """The kind that something ran in; None where everything was recorded."""
    own_verifier: bool = False
    """Whether a verifier has a machine of its own."""
    transcript_digest: str
    """Of the neutral transcript: equal digests mean word-for-word the same conversation."""
    task_digest: str
    variant_digest: str
    cassette: str | None
    """Cassette file, relative to the cassettes folder."""
    trajectory: str
    """Trajectory file, relative to the run folder."""


class Fork(Record):
    """Where a run branches off from another one."""

    run_id: str
    trial_id: str
    turn: int
    """The first that is not as it was, counted from 1."""


class ForeignAgent(Record):
    """The agent of a variant that others ran, in their words."""

    name: str
    version: str = ""
    provider: str | None = None
    """Who gave its model."""


class RunRecord(Record):
    """run.json: what was planned, from what, with what."""

    format: Literal[1] = 1
    run_id: str
    created_at: datetime
    suite: str = Field(pattern=Name)
    suite_version: int
    suite_folder: str
    """As given on the command line."""
    description: str = ""
    record_mode: RecordMode
    tools: ToolsMode
    overrides: tuple[str, ...] = ()
    """The `--set` options, as given."""
    preset: PresetName | None = None
    """The `--preset` option, if given."""
    front: Front = "http"
    """How recorded answers reached the loop."""
    pace: Pace = "fast"
    faults: str | None = None
    """The `--faults` option, if given: such a run is compared with no baseline."""
    imported: str | None = None
    """What its trials were made from, where others ran them: `Harbor`."""
    agents: dict[str, ForeignAgent] = Field(default_factory=dict)
    """Of such a run: variant -> the agent of its first trial."""
    sandbox: str | None = None
    """The `--sandbox` option, if given."""
    agent_timeout_multiplier: float = 1.0
    """Agents were given this times the time that their task gives."""
    verifier_timeout_multiplier: float = 1.0
    forked: Fork | None = None
    """Of a run that goes on with a trial of another one."""
    tasks: dict[str, str]
    """Task name -> digest."""
    titles: dict[str, str] = Field(default_factory=dict)
    """Scenario -> its title, where it has one."""
    variants: tuple[Variant, ...]
    repeats: int
    planned_trials: int
    git_revision: str | None = None
    versions: dict[str, str]
    """Python, this package and the libraries that shape a trial."""
    host: dict[str, str | int]
    """Operating system and cores; never a name or a path."""


class BaselineTrial(Record):
    """What a committed baseline holds of one trial: facts that replay must reproduce."""

    termination_reason: TerminationReason
    outcome: Outcome | None
    iterations: int
    attempts: int
    model_calls: int
    tool_calls_made: int
    tools_used: tuple[str, ...]
    validation_failures: int
    confirmed: bool | None = None
    usage: UsageTotal
    transcript_digest: str


class Baseline(Record):
    """reports/baselines/SUITE.json."""

    format: Literal[1] = 1
    suite: str = Field(pattern=Name)
    suite_version: int
    trials: dict[str, BaselineTrial]
    """By trial id, sorted."""
