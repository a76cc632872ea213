"""`harness accept`: what misses is recorded again, and nothing else."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from tests.cli.tiny import (
    FRUIT,
    ModelServer,
    calls_in,
    model_server,
    trials_of,
    write,
)


@pytest.fixture
def server(recorded):
    """A server in the place of the one that was recorded."""
    with model_server() as server:
        suite = recorded / "suites/tiny/suite.toml"
        lines = suite.read_text(encoding="utf-8").splitlines()
        lines = [
            f'base_url = "http://127.0.0.1:{server.port}/v1"' if "base_url" in line else line
            for line in lines
        ]
        write(suite, "\n".join(lines))
        yield server


def change_fruit(folder: Path) -> None:
    write(
        folder / "suites/tiny/fruit/instruction.md", FRUIT.replace("file fruit", "new file fruit")
    )


def cassettes(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "cassettes").rglob("*.jsonl"))
    }


def test_only_trials_that_miss_are_recorded(recorded, harness, server: ModelServer):
    change_fruit(recorded)
    before = cassettes(recorded)
    done = harness("accept", "tiny", "--yes", "--out", "reports/accepted")
    assert (done.code, len(server.asked)) == (0, 6)
    assert all("new file fruit" in str(messages) for messages in server.asked)
    after = cassettes(recorded)
    assert {name for name in after if after[name] != before[name]} == {
        "cassettes/tiny/fruit/0.jsonl", "cassettes/tiny/fruit/1.jsonl",
    }  # fmt: skip
    assert all(after[name].startswith(before[name]) for name in before)
    assert "\nRecorded 6 model calls in 4 trials.\n" in done.out
    assert "  message 2 (user): 4 trials of fruit (" in done.err
    assert "+Write the word apple into the new file fruit.txt." in done.err
    assert "are used by no trial any more: harness cassette prune\n" in done.out
    # The new run is a replay of all of it.
    assert set(calls_in(recorded / "reports/accepted").values()) == {(2, 0), (3, 0)}
    assert len(trials_of(recorded / "reports/accepted")) == 8
    assert harness("run", "tiny").code == 0


def test_a_change_late_in_a_conversation_asks_only_for_what_follows(recorded, harness, server):
    options = ("--set", "loop.confirm.prompt=Are you sure?", "--repeats", "1")
    done = harness("accept", "tiny", *options, "--yes", "--json")
    assert (done.code, len(server.asked)) == (0, 2)
    assert done.json["recorded_trials"] == ["fruit/confirmed/0", "lines/confirmed/0"]
    assert done.json["recorded_calls"] == 2
    assert [group["cause"] for group in done.json["misses"]] == ["message 6 (user)"]
    assert done.json["run"]["unscored"] == []


def test_where_nothing_misses_nothing_is_recorded(recorded, harness, server):
    runs, before = sorted(Path("reports").iterdir()), cassettes(recorded)
    done = harness("accept", "tiny")
    assert (done.code, done.out) == (0, "Nothing to record: 8 trials without a miss.\n")
    assert (server.asked, cassettes(recorded), sorted(Path("reports").iterdir())) == (
        [], before, runs,
    )  # fmt: skip


def test_without_somebody_to_ask_it_needs_yes(recorded, harness, server):
    change_fruit(recorded)
    before = cassettes(recorded)
    done = harness("accept", "tiny", "--task", "fruit", "--repeats", "1")
    assert (done.code, done.out) == (2, "")
    assert "  message 2 (user): 2 trials of fruit (confirmed, plain)\n" in done.err
    assert "2 trials would be recorded from live models; give --yes to do it" in done.err
    hint = "see every cause in full: harness check --explain tiny --task fruit --repeats 1\n"
    assert done.err.endswith(hint)
    assert (server.asked, cassettes(recorded)) == ([], before)


@pytest.mark.parametrize(("answer", "code", "asked"), [("n", 3, 0), ("y", 0, 2)])
def test_somebody_at_a_terminal_is_asked(
    recorded, harness, monkeypatch, server, answer, code, asked
):
    change_fruit(recorded)
    limits = ("--task", "fruit", "--variants", "plain", "--repeats", "1")
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    with open(theirs, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        done = harness("accept", "tiny", *limits)
    os.close(ours)
    assert (done.code, len(server.asked)) == (code, asked)
    assert "message 2 (user): 1 trial of fruit (plain)" in done.err
    assert "Record 1 trial again, from small-1 (openai)? [y/N]: " in done.err


def test_ci_accepts_only_where_that_is_allowed(recorded, harness, monkeypatch, server):
    monkeypatch.setenv("CI", "true")
    change_fruit(recorded)
    options = ("--yes", "--task", "fruit", "--variants", "plain", "--repeats", "1")
    done = harness("accept", "tiny", *options)
    assert (done.code, server.asked) == (2, [])
    assert "add --allow-live" in done.err
    assert harness("accept", "tiny", *options, "--allow-live").code == 0


def test_keys_are_looked_for_before_anything_is_asked(recorded, harness, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    change_fruit(recorded)
    suite = recorded / "suites/tiny/suite.toml"
    lines = suite.read_text(encoding="utf-8").splitlines()
    write(suite, "\n".join(line for line in lines if "base_url" not in line))
    done = harness("accept", "tiny", "--yes")
    assert done.code == 2
    assert "OPENAI_API_KEY is not set" in done.err


def test_a_server_that_is_gone_is_named_and_leaves_the_misses(recorded, harness):
    change_fruit(recorded)
    limits = ("--task", "fruit", "--variants", "plain", "--repeats", "1")
    done = harness("accept", "tiny", "--yes", *limits)
    assert done.code == 3
    assert "1 of 1 trial without a result (1 infrastructure_error), in fruit\n" in done.err
    assert "cannot reach http://127.0.0.1:" in done.err


def test_a_run_folder_that_is_there_is_refused_before_anything_is_recorded(
    recorded, harness, server
):
    change_fruit(recorded)
    done = harness("accept", "tiny", "--yes", "--out", "reports/first")
    assert (done.code, server.asked) == (2, [])
    assert "reports/first: this folder is there already" in done.err


def test_scenarios_have_nothing_to_record(recorded, harness):
    write(
        recorded / "suites/acted/a.yaml",
        "- {id: A1, turns: [{text: done}], expect: {iterations: 1}}\n",
    )
    done = harness("accept", "acted", "--yes")
    assert done.code == 2
    assert "acted: scenarios ask no model, so there is nothing to record" in done.err
