"""`pytest --harness SUITE`: every trial of a suite, replayed as a test.

Loaded by every pytest run on this environment, so it imports nothing of the package until it is
asked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("harness", "replayed suites")
    group.addoption(
        "--harness",
        action="append",
        default=[],
        metavar="SUITE",
        help="Replay this suite (a folder, or a name under suites/), each trial as a test; "
        "repeatable. Without other arguments only suites are collected.",
    )
    group.addoption(
        "--harness-cassettes",
        type=Path,
        default=Path("cassettes"),
        metavar="DIR",
        help="Folder of the suites' recordings (default: cassettes).",
    )
    group.addoption(
        "--harness-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Override a setting of the suites, as in loop.max_iterations=5; repeatable.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the suites, if there are any."""
    if config.getoption("--harness"):
        trials = importlib.import_module("harness.pytest_plugin.trials")
        config.pluginmanager.register(trials.SuiteCollection(config), "harness-suites")
