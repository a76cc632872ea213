"""`harness run` on tasks that ask something of their machine: options, variables, and skips."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.tiny import SUITE, Answer, Message, ModelServer, model_server, text_of, write

SECRET = "sesame-opens-99"
DOCKERFILE_WITH_TEMPLATE = """FROM debian:12
ENV STOLEN='${FRUIT_TOKEN}'
WORKDIR /app
"""
TEST = "if grep -q apple fruit.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


def solve(messages: list[Message]) -> Answer:
    """Runs the command that the instruction is, and says what came of it."""
    if len(messages) == 2:
        return "shell", {"command": text_of(messages[1]).strip()}
    return f"I saw {text_of(messages[-1])}"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with model_server(solve=solve) as serving:
        settings = SUITE.format(port=serving.port).replace("repeats = 2", "repeats = 1")
        write(Path("suites/tiny/suite.toml"), settings.split('[[variants]]\nname = "confirmed"')[0])
        yield serving


def make_task(name: str, command: str, config: str = "") -> None:
    folder = Path("suites/tiny", name)
    write(folder / "task.toml", config)
    write(folder / "instruction.md", command)
    write(folder / "environment" / "Dockerfile", "FROM debian:12\nEXPOSE 80\nWORKDIR /app\n")
    write(folder / "tests" / "test.sh", TEST)


def record(harness, *options: str):
    return harness("run", "tiny", "--record-mode", "new_episodes", "--out", "out", *options)


def test_the_sandbox_and_the_times_are_chosen_and_told(harness, server):
    make_task("fruit", "echo apple > fruit.txt", "[agent]\ntimeout_sec = 100\n")
    options = ("--sandbox", "unshare", "--timeout-multiplier", "3")
    done = record(harness, *options, "--verifier-timeout-multiplier", "0.5")
    assert (done.code, done.err.count("error")) == (0, 0)
    run = json.loads(Path("out/run.json").read_text())
    assert run["sandbox"] == "unshare"
    assert (run["agent_timeout_multiplier"], run["verifier_timeout_multiplier"]) == (3, 0.5)
    assert '"sandbox":"unshare"' in Path("cassettes/tiny/fruit/0.jsonl").read_text()
    page = Path("out/report.html").read_text()
    assert "sandbox unshare, agent timeout × 3, verifier timeout × 0.5" in page
    replayed = harness("run", "tiny", "--out", "again", "-q")
    assert replayed.code == 0
    assert "1/1" in replayed.out


def test_an_agents_time_is_multiplied(harness, server):
    make_task("fruit", "echo apple > fruit.txt", "[agent]\ntimeout_sec = 100\n")
    assert record(harness, "--agent-timeout-multiplier", "0.000001").code == 0
    (line,) = Path("out/trials.jsonl").read_text().splitlines()
    trial = json.loads(line)
    # The time is up after the first answer: its call is not run, and the verifier says so.
    assert (trial["termination_reason"], trial["outcome"]) == ("duration_exceeded", "failed")


def test_what_cannot_be_run_here_is_skipped_before_anybody_is_asked(harness, server):
    make_task("big", "echo apple > fruit.txt", "[environment]\ngpus = 2\n")
    make_task("keyed", "echo $K", '[environment.env]\nK = "${NOT_SET_HERE}"\n')
    make_task("fruit", "echo apple > fruit.txt")
    ahead = record(harness, "--dry-run")
    assert "1 trial would make an unknown number of live calls" in ahead.out
    lacks = "keyed: not runnable here: the variable NOT_SET_HERE is not set; set it, and allow it"
    assert f"{lacks} with --env NOT_SET_HERE" in ahead.out
    done = record(harness)
    assert done.code == 0
    assert "2 trials skipped:" in done.out
    assert "  big: not runnable here: " in done.out
    assert "  keyed: not runnable here: the variable NOT_SET_HERE is not set" in done.out
    assert len(server.asked) == 2
    assert not Path("cassettes/tiny/big/0.jsonl").exists()
    kept = harness("baseline", "update", "out")
    assert (kept.code, kept.err) == (0, "")
    assert list(json.loads(Path("reports/baselines/tiny.json").read_text())["trials"]) == [
        "fruit/plain/0"
    ]
    assert harness("check", "out").code == 0


def test_what_is_recorded_replays_where_it_could_not_be_run(harness, server, monkeypatch):
    make_task("keyed", "echo apple > fruit.txt", '[environment.env]\nK = "${A_NAME}"\n')
    monkeypatch.setenv("A_NAME", "one")
    assert record(harness, "--env", "A_NAME").code == 0
    monkeypatch.delenv("A_NAME")
    assert harness("run", "tiny", "--out", "again").code == 0
    assert "1 trial skipped" not in harness("run", "tiny", "--record-mode", "once").out
    live = harness("run", "tiny", "--tools", "live", "--out", "live")
    # Nothing else came about.
    assert live.code == 3
    assert "keyed: not runnable here: the variable A_NAME is not set" in live.out


def test_what_cannot_be_recorded_here_is_said_by_accept(harness, server):
    make_task("keyed", "echo apple > fruit.txt", '[environment.env]\nK = "${A_NAME}"\n')
    done = harness("accept", "tiny", "--yes")
    assert done.code == 3
    assert "1 of 1 trial without a result (1 skipped), in keyed" in done.err
    assert "not runnable here: the variable A_NAME is not set" in done.err
    assert server.asked == []


def test_no_variable_is_handed_over_that_nobody_allowed(harness, server, monkeypatch):
    monkeypatch.setenv("FRUIT_TOKEN", SECRET)
    monkeypatch.setenv("FRUIT_KIND", "pear")
    make_task("keyed", "echo $K", '[environment.env]\nK = "${FRUIT_TOKEN}"\n')
    kind = '[environment.env]\nKIND = "${FRUIT_KIND:-apple}"\n'
    make_task("fruit", "echo $KIND > fruit.txt; env", kind)
    write(Path("suites/tiny/fruit/environment/Dockerfile"), DOCKERFILE_WITH_TEMPLATE)
    done = record(harness)
    assert done.code == 0
    why = "not runnable here: it wants the variable FRUIT_TOKEN of this machine; allow it with"
    assert f"  keyed: {why} --env FRUIT_TOKEN" in done.out
    trials = [json.loads(line) for line in Path("out/trials.jsonl").read_text().splitlines()]
    assert [trial["outcome"] for trial in trials if trial["task"] == "fruit"] == ["passed"]
    seen = Path("cassettes/tiny/fruit/0.jsonl").read_text()
    assert "STOLEN=${FRUIT_TOKEN}" in seen
    assert SECRET not in seen
    assert why in harness("task", "check", "suites/tiny").out


def test_an_allowed_variable_is_given_by_its_name_alone(harness, server):
    make_task("fruit", "echo apple > fruit.txt")
    done = record(harness, "--env", "A_NAME=one")
    assert done.code == 2
    assert "'A_NAME=one' is no variable's name" in done.err


def test_variables_that_a_task_names_reach_it_and_no_file_if_they_are_secret(
    harness, server, monkeypatch
):
    monkeypatch.setenv("FRUIT_TOKEN", SECRET)
    monkeypatch.setenv("OTHER_TOKEN", "stays-at-home")
    config = '[environment.env]\nTOKEN = "${FRUIT_TOKEN}"\nKIND = "${FRUIT_KIND:-apple}"\n'
    make_task("fruit", "echo $TOKEN; echo $KIND $OTHER_TOKEN > fruit.txt; env", config)
    done = record(harness, "--env", "FRUIT_TOKEN", "--env", "OTHER_TOKEN")
    assert done.code == 0
    (trial,) = [json.loads(line) for line in Path("out/trials.jsonl").read_text().splitlines()]
    assert trial["outcome"] == "passed"
    written = [path for path in Path().rglob("*") if path.is_file()]
    assert len(written) > 5
    for path in written:
        assert SECRET.encode() not in path.read_bytes(), path
        assert b"stays-at-home" not in path.read_bytes(), path
    assert "REDACTED" in Path("cassettes/tiny/fruit/0.jsonl").read_text().upper()


def test_what_is_not_done_of_a_dockerfile_is_told_with_the_trial(harness, server):
    make_task("fruit", "echo apple > fruit.txt")
    assert record(harness).code == 0
    (trial,) = [json.loads(line) for line in Path("out/trials.jsonl").read_text().splitlines()]
    assert any("EXPOSE" in line for line in trial["ignored"])
    assert "Not done here: " in harness("show", "out", "fruit/plain/0").out


def test_options_of_machines_are_for_suites_and_no_finished_run(harness, server):
    make_task("fruit", "echo apple > fruit.txt")
    assert record(harness).code == 0
    done = harness("check", "out", "--timeout-multiplier", "2")
    assert done.code == 2
    assert "--timeout-multiplier" in done.err


def test_a_task_that_cannot_be_loaded_stops_only_a_run_of_itself(harness, server):
    make_task("fruit", "echo apple > fruit.txt")
    make_task("wrong", "echo apple", '[environment]\nmemory = "much"')
    settings = Path("suites/tiny/suite.toml")
    settings.write_text(settings.read_text() + '[[variants]]\nname = "own"\ntasks = ["wrong"]\n')
    assert record(harness, "--task", "fru*").code == 0
    for options in ((), ("--task", "wrong"), ("--task", "fruit", "--task", "wr*")):
        done = harness("run", "tiny", *options)
        assert (done.code, done.out) == (2, "")
        assert "suites/tiny/wrong/task.toml: environment.memory = 'much'" in done.err


def test_a_sandbox_that_is_named_and_does_not_work_stops_what_would_run_in_it(
    harness, server, monkeypatch
):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")
    make_task("fruit", "echo apple > fruit.txt")
    assert record(harness).code == 0
    assert harness("run", "tiny", "--sandbox", "docker", "--out", "replayed").code == 0
    done = harness("run", "tiny", "--sandbox", "docker", "--tools", "live", "--out", "live")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "--sandbox docker does not work here: " in done.err
    assert not Path("live").exists()


def test_trials_whose_verifier_gives_no_reward_are_listed_with_the_reason(harness, server):
    make_task("fruit", "echo apple > fruit.txt")
    for name in ("mute", "odd"):
        make_task(name, "echo apple > fruit.txt")
        write(Path("suites/tiny", name, "tests", "test.sh"), "echo no word\n")
    done = record(harness)
    assert done.code == 0
    lines = done.out.splitlines()
    at = lines.index("2 trials without a verdict:")
    assert lines[at + 1].startswith("  mute/plain/0, odd/plain/0: the verifier ")
    assert "reward" in lines[at + 1]
    page = Path("out/report.html").read_text()
    assert lines[at + 1].partition(": ")[2][:20] in page[page.index("2 trials have no verdict") :]


def test_what_something_ran_in_is_told_and_nothing_where_all_was_recorded(harness, server):
    make_task("fruit", "echo apple > fruit.txt")
    config = '[verifier]\nenvironment_mode = "separate"\n[verifier.environment]\n'
    write(Path("suites/tiny/fruit/tests/Dockerfile"), "FROM debian:12\nCOPY . /tests\n")
    write(Path("suites/tiny/fruit/task.toml"), config)
    assert record(harness, "--sandbox", "unshare").code == 0
    assert harness("run", "tiny", "--out", "replayed").code == 0
    trials = [json.loads(Path(name, "trials.jsonl").read_text()) for name in ("out", "replayed")]
    assert [trial["sandbox"] for trial in trials] == ["unshare", None]
    assert [trial["own_verifier"] for trial in trials] == [True, True]
