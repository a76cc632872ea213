"""Suites as directories of tests, trials as tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.baseline import difference
from harness.analysis.exact import describe, trial_differences
from harness.cassette.secrets import secrets_in
from harness.errors import BadInputError, HarnessError
from harness.loader.scenarios import is_scenarios
from harness.loader.suite import load_suite
from harness.runner.baseline_file import baseline_file, read_baseline
from harness.runner.plan import Cell, TrialSpec, plan, public_names, suite_folder
from harness.runner.trial import TrialSettings, open_cassette, run_trial
from harness.runner.trial_loop import check_loops
from harness.runner.trial_record import Trial
from harness.schema.loop_config import UNSCORED
from harness.schema.results import Baseline, Verdict

REPORTS = Path("reports")


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite that is to be collected."""

    cells: tuple[Cell, ...]
    settings: TrialSettings
    baseline: Baseline | None


class SuiteCollection:
    """Makes pytest collect suites: loaded and checked before any test is."""

    def __init__(self, config: pytest.Config) -> None:
        """Load every suite.

        Raises:
            pytest.UsageError: one of them cannot be used.
        """
        self._suites: dict[Path, LoadedSuite] = {}
        for argument in config.getoption("--harness"):
            try:
                folder = suite_folder(argument)
                _refuse_scenarios(folder, argument)
                file = (folder / "suite.toml").absolute()
                self._suites[file] = _load(argument, file.parent, config)
            except BadInputError as error:
                raise pytest.UsageError(str(error)) from None
        _set_arguments(config, self._suites)

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect the chosen suites."""
        suite = self._suites.get(file_path)
        if suite is None:
            return None
        folder = file_path.parent.name
        nodeid = folder if parent.nodeid in ("", ".") else parent.nodeid
        collector: SuiteCollector = SuiteCollector.from_parent(
            parent, name=folder, path=file_path, nodeid=nodeid
        )
        collector.suite = suite
        return collector


def _refuse_scenarios(folder: Path, argument: str) -> None:
    if is_scenarios(folder):
        raise BadInputError(
            f"--harness {argument}: holds scenarios; run them with `harness run {argument}`"
        )


def _load(argument: str, folder: Path, config: pytest.Config) -> LoadedSuite:
    suite = load_suite(folder, overrides=config.getoption("--harness-set"))
    path = baseline_file(REPORTS, suite.name)
    settings = TrialSettings(
        cassettes=config.getoption("--harness-cassettes").absolute(),
        suite_argument=argument,
        secrets=secrets_in(os.environ, public_names(suite)),
    )
    cells = plan(suite)
    check_loops(spec for cell in cells if cell.repeat == 0 for spec in cell.specs)
    return LoadedSuite(cells, settings, read_baseline(path) if path.exists() else None)


def _set_arguments(config: pytest.Config, files: Iterable[Path]) -> None:
    """Have the suites collected, and besides them only what was asked for.

    A test's id names its suite's folder, which pytest would not take apart: such an argument
    becomes one that names the file.
    """
    given = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    by_folder = {file.parent: file for file in files}
    arguments = []
    for argument in given:
        path, colons, rest = argument.partition("::")
        folder = (config.invocation_params.dir / path).absolute()
        file = by_folder.get(folder)
        arguments.append(f"{file}{colons}{rest}" if file else argument)
    named = {argument.split("::")[0] for argument in arguments}
    arguments += [str(file) for file in files if str(file) not in named]
    config.args = arguments


class SuiteCollector(pytest.Collector):
    """A suite. Not a pytest.File: its tests' ids name the folder, and --lf wants a file's own."""

    suite: LoadedSuite

    def collect(self) -> Iterator[pytest.Item]:
        """One item per trial."""
        for cell in self.suite.cells:
            for spec in cell.specs:
                item: TrialItem = TrialItem.from_parent(self, name=spec.trial_id)
                item.prepare(self.suite, cell, spec)
                yield item


class TrialFailed(Exception):
    """A trial that is not as it should be; the text says in what."""


class TrialItem(pytest.Item):
    """One trial, replayed."""

    def prepare(self, suite: LoadedSuite, cell: Cell, spec: TrialSpec) -> None:
        """Say which trial this is."""
        self._suite, self._cell, self._spec = suite, cell, spec

    def runtest(self) -> None:
        """Replay it; nothing is called and no tool runs."""
        with open_cassette(self._cell, self._suite.settings) as store:
            trial = run_trial(self._spec, store, self._suite.settings)
        problem = _problem(trial, self._suite.baseline)
        if problem:
            raise TrialFailed(problem)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Our own failures are texts for people; a traceback would only bury them."""
        if isinstance(excinfo.value, TrialFailed | HarnessError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """What a failure is headed with."""
        return self.path, None, self.name


def _problem(trial: Trial, baseline: Baseline | None) -> str | None:
    """What is wrong with a trial, or None."""
    record = trial.record
    if record.termination_reason in UNSCORED:
        return f"{record.termination_reason}: {record.error}"
    if baseline is None:
        return None if record.outcome == "passed" else _verdict(trial.verdict)
    found = difference(record, baseline)
    if not found:
        return None
    return f"not as in the baseline: {describe(trial_differences(record, found))}"


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return (
            "no verdict is recorded for this conversation; record the trial again, or commit a "
            "baseline: harness baseline update last"
        )
    rewards = ", ".join(f"{name} {value:g}" for name, value in verdict.rewards.items())
    head = f"the verifier failed it: {rewards}" if rewards else f"no reward: {verdict.error}"
    return f"{head}\n{verdict.log}".rstrip()
