"""A made-up run that looks like a real one: the real loop, driven by a seeded script."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import InfrastructureError, ReplayMissError
from harness.loop.engine import Loop
from harness.protocols import OutputSpec
from harness.providers.scripted import Scripted, turn
from harness.schema.loop_config import UNSCORED, Confirm, LoopConfig
from harness.schema.messages import ModelTurn, ToolSpec, Usage
from harness.schema.record import Json, JsonObject
from harness.schema.results import RunRecord, TrialRecord, Verdict
from harness.schema.suite import ModelConfig, OutputConfig, Price, Task, Variant
from harness.schema.trajectory import Trajectory
from harness.scorers.efficiency import cost_usd
from harness.scorers.standard import score_trial
from harness.values import Effect, ScoreInput, ToolInvocation, ToolOutcome

MODEL = ModelConfig(
    provider="openai",
    name="small-coder-1.5b",
    base_url="http://127.0.0.1:18080/v1",
    temperature=0.7,
    price=Price(input=0.15, output=0.6),
)
SYSTEM = (
    "You work in the folder /workspace with the tools listed below.\n"
    "Look at the files before you act; never guess what is in them."
)
ADVICE = "\n\n# Skill: tidy-tables\nRead the header line first. Check your sum twice."

TASKS_WITH_OUTPUT = {
    "contact-card": "Read `card.txt` and hand in name, mail address and phone number.",
    "invoice-total": "Read `invoice.txt` and hand in the amount of each line and the total.",
    "log-levels": "Count the lines of each level in `app.log` and hand in the counts.",
    "meeting-slot": "Read the calendars and hand in the first free hour all three have.",
    "stock-order": "Read `stock.csv` and hand in what has to be ordered.",
    "ticket-triage": "Read `tickets.json` and hand in the ids of the urgent ones.",
}
TASKS_WITH_TEXT = {
    "clean-names": "Bring the names in `names.csv` into the form `Last, First`.",
    "fix-average": "`average.py` prints a wrong average. Correct it and say what was wrong.",
    "missing-prices": "Which products in `products.csv` have no price? If it is missing, say so.",
    "new-release": "Set the version to 2.1.0 in every file that names the old one.",
    "rename-photos": "Rename the photos to their date, as in `2024-05-01.jpg`.",
    "sum-sales": "Write the sum of each region's sales into `sums.txt`.",
}
INSTRUCTIONS = dict(sorted({**TASKS_WITH_OUTPUT, **TASKS_WITH_TEXT}.items()))

VARIANTS = (
    Variant(
        name="baseline",
        description="One attempt, no advice, the first final answer counts.",
        model=MODEL,
        loop=LoopConfig(max_iterations=6),
    ),
    Variant(
        name="reflection",
        description="A draft of the result is shown back before it is handed in.",
        model=MODEL,
        loop=LoopConfig(max_iterations=6, reflection=True),
        tasks=tuple(TASKS_WITH_OUTPUT),
    ),
    Variant(
        name="double-confirmation",
        description="Before a final text counts, the loop asks whether the task is really done.",
        model=MODEL,
        loop=LoopConfig(max_iterations=6, confirm=Confirm(enabled=True)),
        tasks=tuple(TASKS_WITH_TEXT),
    ),
    Variant(
        name="skills",
        description="The task's own skills are in the system prompt.",
        model=MODEL,
        loop=LoopConfig(max_iterations=6),
        skills="curated",
    ),
)

VARIANT_NAMES = tuple(variant.name for variant in VARIANTS)

MISSED = ("meeting-slot", "skills", 1)
BROKEN = ("new-release", "baseline", 2)
UNJUDGED = ("log-levels", "skills", 2)
MIXED = ("sum-sales", "skills", 0)

MISS = """\
no recorded answer to model call 3
nearest recorded request: 4 of 5 messages are the same; the first difference is in message 5
--- recorded
+++ asked
@@ message 5, user @@
-total: 118.20
+total: 118.2
next: harness run suites/basics --task meeting-slot --record-mode new_episodes --allow-live"""

OUTPUT_TOOL = ToolSpec(
    name="output",
    description="Hand in the result of the task.",
    parameters={
        "type": "object",
        "required": ["answer", "total"],
        "properties": {"answer": {"type": "string"}, "total": {"type": "number"}},
    },
)


@dataclass(frozen=True)
class SampleRun:
    run: RunRecord
    trials: tuple[TrialRecord, ...]
    trajectories: dict[str, Trajectory]

    def load(self, trial: TrialRecord) -> Trajectory | None:
        return self.trajectories.get(trial.trial_id)


class SampleTools:
    """Gives the results it is told to, in order."""

    def __init__(self, outcomes: Iterator[ToolOutcome]) -> None:
        self.outcomes = outcomes

    def specs(self) -> tuple[ToolSpec, ...]:
        names = ("shell", "read_file", "write_file", "list_dir")
        return tuple(
            ToolSpec(name=name, description=name, parameters={"type": "object"}) for name in names
        )

    def identity(self, name: str) -> str:
        return name

    def is_sequential(self, name: str) -> bool:
        return name in ("shell", "write_file")

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        return None

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        return next(self.outcomes)


def total_is_not_negative(value: Json) -> str | None:
    assert isinstance(value, dict)
    total = value["total"]
    assert isinstance(total, int | float)
    return f"total is {total}, and a total cannot be negative" if total < 0 else None


def sample_run(
    *,
    tasks: Sequence[str] = tuple(INSTRUCTIONS),
    variants: Sequence[str] = VARIANT_NAMES,
    repeats: int = 3,
    seed: int = 7,
) -> SampleRun:
    """A run of 12 tasks, 4 variants and 3 repeats, or less."""
    chosen = tuple(variant for variant in VARIANTS if variant.name in variants)
    trials, trajectories = [], {}
    for task in tasks:
        for variant in chosen:
            if variant.tasks != ("*",) and task not in variant.tasks:
                continue
            for repeat in range(repeats):
                # A generator of its own keeps a trial the same whatever else is in the run.
                rng = random.Random(f"{seed}/{task}/{variant.name}/{repeat}")
                trajectory = run_loop(task, variant, repeat, rng)
                record = record_of(task, variant, repeat, trajectory, rng)
                trials.append(record)
                trajectories[record.trial_id] = trajectory
    run = RunRecord(
        run_id="20261122-101500-basics",
        created_at=datetime(2026, 11, 22, 10, 15, tzinfo=UTC),
        suite="basics",
        suite_version=1,
        suite_folder="suites/basics",
        description="Small office and shell jobs, sized for a small local model.",
        record_mode="none",
        tools="replay",
        tasks={task: digest_of(task) for task in tasks},
        variants=chosen,
        repeats=repeats,
        planned_trials=len(trials),
        git_revision="4f1c2ab",
        versions={"python": "3.11.2", "loop-harness": "0.1.0", "openai": "3.54.0"},
        host={"system": "Linux", "cores": 2},
    )
    return SampleRun(run, tuple(trials), trajectories)


def run_loop(task: str, variant: Variant, repeat: int, rng: random.Random) -> Trajectory:
    has_output = task in TASKS_WITH_OUTPUT
    script = Script(task, variant, rng)
    breaks: Exception | None = None
    if (task, variant.name, repeat) == MISSED:
        breaks = ReplayMissError(MISS)
    if (task, variant.name, repeat) == BROKEN:
        breaks = InfrastructureError("the sandbox could not be set up: no space left on device")
    loop = Loop(
        Scripted(script.turns(breaks)),
        model=MODEL.name,
        tools=SampleTools(script.outcomes()),
        output=output_of(variant) if has_output else None,
        config=variant.loop,
    )
    advice = ADVICE if variant.skills == "curated" else ""
    return loop.run(INSTRUCTIONS[task], system=SYSTEM + advice)


def output_of(variant: Variant) -> OutputSpec:
    return OutputSpec(
        tool=OUTPUT_TOOL,
        validators=(total_is_not_negative,),
        reflection_handler=(lambda draft: f"Your draft: {json.dumps(draft)}. Is the total right?"),
    )


class Script:
    """What the model of one trial says, and what its tools answer."""

    def __init__(self, task: str, variant: Variant, rng: random.Random) -> None:
        self.task = task
        self.variant = variant
        self.rng = rng
        self.input = 380 + 60 * (variant.skills == "curated")
        self.calls = 0

    def turns(self, breaks: Exception | None) -> Iterator[ModelTurn | Exception]:
        rng = self.rng
        looks = rng.choice((1, 1, 2, 3, 7)) if self.task != "rename-photos" else 7
        yield self.say("I look at the files first.", ("list_dir", {"path": "."}))
        for number in range(looks):
            if breaks and number == 0:
                yield breaks
                return
            command = f"cat {rng.choice(('data.csv', 'notes.txt', 'invoice.txt'))} | head -n 20"
            yield self.say("", ("shell", {"command": command}))
        if self.task in TASKS_WITH_OUTPUT:
            yield from self.results()
        else:
            yield from self.texts()

    def results(self) -> Iterator[ModelTurn]:
        if self.rng.random() < 0.25:
            yield self.say("The total is 118.2, I think.")
        while True:
            total = -1 if self.rng.random() < 0.35 else 118.2
            yield self.say("", ("output", {"answer": "found", "total": total}))
            if self.variant.loop.reflection:
                yield self.say("The draft is right.", ("submit", {}))

    def texts(self) -> Iterator[ModelTurn]:
        text = "def average(values):\n    return sum(values) / len(values)\n"
        yield self.say("", ("write_file", {"path": "average.py", "content": text}))
        while True:
            yield self.say("It is done: the files in /workspace are changed.")
            if self.rng.random() < 0.4:
                yield self.say("CONTINUE: I check the file again.")
                yield self.say("", ("read_file", {"path": "average.py"}))
            yield self.say("COMPLETED: the files are changed and checked.")

    def say(self, text: str, *calls: tuple[str, dict[str, object]]) -> ModelTurn:
        made = []
        for name, arguments in calls:
            self.calls += 1
            made.append((f"call_{self.calls}", name, json.dumps(arguments)))
        self.input += self.rng.randint(60, 240)
        usage = Usage(input=self.input, output=self.rng.randint(12, 90))
        return turn(text, calls=made, usage=usage, model=MODEL.name)

    def outcomes(self) -> Iterator[ToolOutcome]:
        yield ToolOutcome("average.py\ndata.csv\ninvoice.txt\nnotes.txt")
        while True:
            if self.rng.random() < 0.15:
                yield ToolOutcome("cat: notes.txt: No such file or directory", status="failed")
            lines = [
                f"{n},region-{n % 4},{n * 37 % 100}.50" for n in range(self.rng.randint(3, 40))
            ]
            yield ToolOutcome("\n".join(["id,region,amount", *lines]))


def record_of(
    task: str,
    variant: Variant,
    repeat: int,
    trajectory: Trajectory,
    rng: random.Random,
) -> TrialRecord:
    scored = trajectory.termination_reason not in UNSCORED
    easy = {"clean-names": 0.9, "contact-card": 0.8, "rename-photos": 0.1, "stock-order": 0.0}
    chance = easy.get(task, 0.35) + 0.25 * (variant.name != "baseline")
    passed = trajectory.termination_reason == "completed" and rng.random() < chance
    judged = scored and (task, variant.name, repeat) != UNJUDGED
    verdict = Verdict(rewards={"reward": float(passed)}) if judged else None
    mixed = (task, variant.name, repeat) == MIXED
    return TrialRecord(
        trial_id=f"{task}/{variant.name}/{repeat}",
        suite="basics",
        task=task,
        variant=variant.name,
        repeat=repeat,
        termination_reason=trajectory.termination_reason,
        outcome=("passed" if passed else "failed") if judged else None,
        iterations=trajectory.iterations,
        attempts=trajectory.attempts,
        model_calls=trajectory.model_calls,
        tool_calls_made=trajectory.tool_calls_made,
        tools_used=trajectory.tools_used,
        validation_failures=len(trajectory.validation_failures),
        confirmed=trajectory.confirmed,
        usage=trajectory.usage,
        cost_usd=cost_usd(trajectory.usage, MODEL.price),
        duration_s=round(rng.uniform(0.02, 0.4), 3),
        scores=score_trial(ScoreInput(sample_task(task), MODEL, trajectory, verdict)),
        error=trajectory.error,
        response_models=(*trajectory.models, "small-coder-1.5b-v2") if mixed else trajectory.models,
        mixed=mixed,
        served=trajectory.model_calls - trajectory.failed_calls,
        transcript_digest=digest_of(
            trajectory.model_dump_json(include={"system", "messages", "output"})
        ),
        task_digest=digest_of(task),
        variant_digest=digest_of(variant.name),
        cassette=f"basics/{task}/{repeat}.jsonl",
        trajectory=f"trajectories/{task}/{variant.name}/{repeat}.json",
    )


def sample_task(name: str) -> Task:
    folder = Path("suites/basics") / name
    return Task(
        name=name,
        folder=folder,
        instruction=INSTRUCTIONS[name],
        tests=folder / "tests",
        output=OutputConfig(schema={"type": "object"}) if name in TASKS_WITH_OUTPUT else None,
        digest=digest_of(name),
        tests_digest=digest_of(name),
    )


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
