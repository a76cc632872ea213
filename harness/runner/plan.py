"""What a run will do: suite x variants x repeats, in cells of one task and one repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.errors import BadInputError
from harness.loader.reading import known
from harness.loader.scenarios import is_scenarios
from harness.loader.suite import applies, resolve_model, resolve_variant
from harness.schema.recording import RecordingRules
from harness.schema.suite import ModelConfig, Suite, Task, Variant

SUITES = Path("suites")


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One trial that is to be run; picklable, and free of secrets."""

    suite: str
    system: str
    task: Task
    variant: Variant
    model: ModelConfig
    repeat: int

    @property
    def trial_id(self) -> str:
        """Unique within a run, and the same in every run of the suite."""
        return f"{self.task.name}/{self.variant.name}/{self.repeat}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One task x repeat: all its variants run one after another on one cassette."""

    suite: str
    task: Task
    repeat: int
    specs: tuple[TrialSpec, ...]
    recording: RecordingRules


def public_names(suite: Suite) -> set[str]:
    """Names that files, trials and tools go by."""
    outputs = {task.output.name for task in suite.tasks if task.output is not None}
    tools = {tool for task in suite.tasks for tool in task.tools}
    tasks, variants = ({one.name for one in ones} for ones in (suite.tasks, suite.variants))
    return {suite.name} | tasks | variants | tools | outputs


def suite_folder(argument: str) -> Path:
    """The folder or scenario file of a suite named by path, or by name under suites/.

    Raises:
        BadInputError: there is none.
    """
    if not argument.strip():
        raise BadInputError(
            f"{argument!r} names no suite; give its folder or a name under {SUITES}/"
        )
    for folder in (Path(argument), SUITES / argument):
        if folder.is_dir() or is_scenarios(folder):
            return folder
    names = [
        folder.name
        for folder in SUITES.glob("*/")
        if (folder / "suite.toml").is_file() or is_scenarios(folder)
    ]
    raise BadInputError(
        f"{argument!r} is neither a suite's folder nor a name under {SUITES}/; "
        f"{known(names, argument)}"
    )


def plan(
    suite: Suite,
    *,
    variants: Sequence[str] = (),
    tasks: Sequence[str] = (),
    repeats: int | None = None,
) -> tuple[Cell, ...]:
    """The cells of a run, by repeat and then by task.

    Args:
        suite: what to run.
        variants: names to run; empty means all.
        tasks: globs of task names to run; empty means all.
        repeats: how many; None means the suite's own number.

    Raises:
        BadInputError: a variant or glob that names nothing.
    """
    chosen_variants = _choose_variants(suite, variants)
    chosen_tasks = choose_tasks(suite, tasks)
    count = suite.repeats if repeats is None else repeats
    cells = []
    for repeat in range(count):
        for task in chosen_tasks:
            specs = tuple(
                TrialSpec(
                    suite=suite.name,
                    system=suite.system if task.system is None else task.system,
                    task=task,
                    variant=resolve_variant(variant, task),
                    model=resolve_model(variant, task),
                    repeat=repeat,
                )
                for variant in chosen_variants
                if applies(variant, task)
            )
            if specs:
                cells.append(Cell(suite.name, task, repeat, specs, suite.recording))
    if not cells:
        raise BadInputError(
            f"{suite.file}: nothing to run: the chosen variants are limited to "
            "other tasks; choose others with --variants or --task"
        )
    return tuple(cells)


def _choose_variants(suite: Suite, names: Sequence[str]) -> tuple[Variant, ...]:
    known = [variant.name for variant in suite.variants]
    for name in names:
        if name not in known:
            raise BadInputError(f"{suite.file}: no variant {name!r}; there are: {', '.join(known)}")
    return tuple(variant for variant in suite.variants if not names or variant.name in names)


def choose_tasks(suite: Suite, globs: Sequence[str]) -> tuple[Task, ...]:
    """The tasks that globs name; all of them where there is none.

    Raises:
        BadInputError: a glob that names nothing.
    """
    known = [task.name for task in suite.tasks]
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            raise BadInputError(
                f"{suite.folder}: no task matches {glob!r}; there are: {', '.join(known)}"
            )
    return tuple(
        task
        for task in suite.tasks
        if not globs or any(fnmatchcase(task.name, glob) for glob in globs)
    )
