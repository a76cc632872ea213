"""`harness fork`: what came before the turn is as recorded, what comes after it is live."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cassette.format import decode_line, encode_line
from tests.cassette.loopback import upstream
from tests.cli.tiny import FRUIT, calls_in, model_server, text_of, trials_of, write


def cassettes(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted((folder / "cassettes").rglob("*.jsonl*"))}


def at(port: int) -> tuple[str, str]:
    return ("--set", f"model.base_url=http://127.0.0.1:{port}/v1")


def test_only_the_turns_from_n_on_are_asked_of_the_model(recorded, harness):
    before = cassettes(recorded)
    with model_server(solve=lambda messages: "There is an apple now.") as server:
        options = ("fork", "first", "fruit/plain/0", "--turn", "2", "--out", "reports/forked")
        done = harness(*options, *at(server.port))
    assert (done.code, done.err) == (0, "")
    (asked,) = server.asked
    # The file of turn 1 was written again: the verifier found it.
    assert text_of(asked[-1]).startswith("Wrote 5 bytes")
    (trial,) = trials_of(recorded / "reports/forked")
    assert (trial.termination_reason, trial.outcome, trial.iterations) == ("completed", "passed", 2)
    assert calls_in(recorded / "reports/forked") == {"fruit/plain/0": (1, 1)}
    assert done.out.splitlines() == [
        "fruit/plain/0 from turn 2 on: completed, passed (before: completed, passed)",
        "1 model call as recorded, 1 live model call",
        "harness compare reports/first reports/forked",
        "Report: reports/forked/report.html",
    ]
    assert cassettes(recorded) == before
    kept = recorded / "reports/forked/cassettes/tiny/fruit/0.jsonl"
    assert "There is an apple now." in kept.read_text(encoding="utf-8")
    assert "There is an apple now." in harness("show", "forked", "fruit/plain/0").out
    assert "Forked" in Path("reports/forked/report.html").read_text(encoding="utf-8")
    assert harness("compare", "first", "forked").code in (0, 1)


@pytest.mark.parametrize(
    ("turn", "settings", "asked"),
    [
        ("1", (), 2),
        ("2", ("--set", "loop.confirm={enabled = true}"), 2),
        ("3", ("--set", "loop.confirm={enabled = true}"), 1),
        ("3", (), 0),
    ],
)
def test_settings_change_what_is_asked_from_there_on(recorded, harness, turn, settings, asked):
    with model_server() as server:
        options = ("fork", "first", "fruit/plain/0", "--turn", turn, *at(server.port), "--json")
        done = harness(*options, *settings)
    assert done.code == 0
    assert len(server.asked) == asked
    assert done.json["trial"]["recorded"] == asked
    assert done.json["trial"]["outcome"] == "passed"
    assert done.json["forked"] == {
        "run_id": "first", "trial_id": "fruit/plain/0", "turn": int(turn),
    }  # fmt: skip


def test_the_model_is_fed_what_was_recorded_before_the_turn(recorded, harness):
    write(recorded / "suites/tiny/lines/environment/workspace/data.txt", "changed\n")
    with model_server() as server:
        options = ("fork", "first", "lines/plain/0", "--turn", "2", *at(server.port))
        done = harness(*options, "--json")
    assert done.code == 0
    assert text_of(server.asked[0][-1]) == "one\ntwo\n"
    (change,) = done.json["trial"]["tool_changes"]
    assert "-two\n+changed" in change["difference"]


def test_another_vendors_model_can_go_on(recorded, harness):
    with upstream() as server:
        server.answers.append("There is an apple now.")
        options = (
            *("--set", "model.provider=anthropic", "--set", "model.name=tiny-2"),
            *("--set", f"model.base_url=http://127.0.0.1:{server.port}"),
        )
        done = harness("fork", "first", "fruit/plain/0", "--turn", "2", *options, "--json")
    assert (done.code, done.json["trial"]["response_models"]) == (0, ["small-1", "tiny-2"])
    (asked,) = server.asked
    kinds = [block["type"] for message in asked["messages"] for block in message["content"]]
    assert kinds == ["text", "tool_use", "tool_result"]


def test_without_recording_what_is_not_in_the_cassette_is_a_miss(recorded, harness):
    options = ("fork", "first", "lines/plain/0", "--turn", "2", "--record-mode", "none")
    done = harness(*options, "--set", "loop.confirm={enabled = true}", "--json")
    # The variant with confirmation has recorded the same.
    assert (done.code, done.json["trial"]["confirmed"]) == (0, True)
    done = harness(*options, "--set", "model.temperature=0")
    assert done.code == 3
    assert "1 of 1 trial without a result (1 replay_miss), in lines\n" in done.err
    assert "-temperature: 0.5\n    +temperature: 0" in done.err


def test_a_recording_that_is_given_in_order_goes_on_with_a_live_model(recorded, harness):
    path = recorded / "cassettes/tiny/fruit/0.jsonl"
    first, *lines = path.read_bytes().splitlines(keepends=True)
    header = decode_line(first.rstrip())
    path.write_bytes(encode_line(header.model_copy(update={"match": "position"})) + b"".join(lines))
    limits = ("--task", "fruit", "--variants", "plain", "--repeats", "1")
    assert harness("run", "tiny", *limits, "--out", "ordered").code == 0
    options = ("fork", "ordered", "fruit/plain/0", "--turn", "2")
    done = harness(*options, "--record-mode", "none")
    assert done.code == 2
    assert "gives its answers in order" in done.err
    with model_server(solve=lambda messages: "There is an apple now.") as server:
        done = harness(*options, *at(server.port), "--json")
    assert (done.code, len(server.asked)) == (0, 1)
    assert done.json["trial"]["outcome"] == "passed"


def test_a_model_that_cannot_be_asked_is_named(recorded, harness):
    done = harness("fork", "first", "fruit/plain/0", "--turn", "2", "--out", "forked")
    assert done.code == 3
    assert "fruit/plain/0 from turn 2 on: infrastructure_error (before: completed" in done.out
    assert "cannot reach http://127.0.0.1:" in done.err


def test_a_trial_that_missed_goes_on_from_there(recorded, harness):
    options = ("--set", "loop.confirm.prompt=Are you sure?", "--task", "lines", "--repeats", "1")
    assert harness("run", "tiny", *options, "--out", "missed").code == 3
    with model_server() as server:
        done = harness("fork", "missed", "lines/confirmed/0", "--turn", "3", *at(server.port))
    assert (done.code, len(server.asked)) == (0, 1)
    assert text_of(server.asked[0][-1]) == "Are you sure?"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fruit/plain/0", "--turn", "9"), "fruit/plain/0 has 2 turns; give 1 to 3"),
        (("fruit/plain/7", "--turn", "1"), "has no trial 'fruit/plain/7'"),
        (("fruit/plain/0", "--turn", "0"), "--turn"),
        (("fruit/plain/0",), "--turn"),
        (("fruit/plain/0", "--turn", "2", "--set", "model.colour=red"), "colour"),
    ],
)
def test_what_cannot_be_forked_is_refused(recorded, harness, arguments, said):
    done = harness("fork", "first", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert sorted(path.name for path in Path("reports").iterdir()) == ["baselines", "first"]


def test_a_trial_that_does_not_replay_as_it_was_is_refused(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    done = harness("fork", "first", "fruit/plain/0", "--turn", "2")
    assert done.code == 2
    assert "run tiny again and fork that run" in done.err


def test_a_fork_is_forked_at_its_origin(recorded, harness):
    options = ("fruit/plain/0", "--turn", "2", "--record-mode", "none")
    assert harness("fork", "last", *options).code == 0
    done = harness("fork", "last", *options)
    assert done.code == 2
    assert (
        ": is a fork of 'fruit/plain/0' in run 'first'; "
        "fork that one: harness fork first fruit/plain/0" in done.err
    )


def test_a_run_with_faults_is_not_forked(recorded, harness):
    assert harness("run", "tiny", "--faults", "400@2", "--out", "faulty").code == 0
    done = harness("fork", "faulty", "fruit/plain/0", "--turn", "2")
    assert done.code == 2
    assert "was run with --faults 400@2" in done.err


def test_settings_are_looked_at_before_the_trial_is_replayed(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    options = ("fruit/plain/0", "--turn", "2", "--set", "model.colour=red")
    done = harness("fork", "first", *options)
    assert (done.code, "colour" in done.err) == (2, True)


def test_ci_forks_only_where_that_is_allowed(recorded, harness, monkeypatch):
    monkeypatch.setenv("CI", "true")
    options = ("fork", "first", "fruit/plain/0", "--turn", "3")
    done = harness(*options)
    assert done.code == 2
    assert "add --allow-live or --record-mode none" in done.err
    assert harness(*options, "--record-mode", "none").code == 0
    assert harness(*options, "--allow-live").code == 0


def test_a_fork_is_compared_with_its_origin_and_no_baseline(recorded, harness):
    harness("fork", "first", "fruit/plain/0", "--turn", "3", "--record-mode", "none")
    (forked,) = (p for p in Path("reports").iterdir() if p.name not in ("baselines", "first"))
    record = json.loads((forked / "run.json").read_text(encoding="utf-8"))
    assert record["forked"]["turn"] == 3
    done = harness("check", str(forked))
    assert done.code == 2
    assert "harness compare first " in done.err
    assert harness("baseline", "update", str(forked)).code == 2
