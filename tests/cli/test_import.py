from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.cassette.convert.samples import MESSAGES, PLAIN, atif, in_file
from tests.cassette.convert.test_vcr import SHAPES, cassette
from tests.cli.conftest import Harness
from tests.report.page import parse
from tests.runner.harbor_folders import EPISODES, trial


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_conversations_become_cassettes_and_come_out_again(harness: Harness):
    in_file(Path("talk.json"), {"messages": PLAIN, "task": "greet"})
    in_file(Path("run-1/agent/trajectory.json"), atif())
    done = harness("import", "conversation", "talk.json", "run-1/agent/trajectory.json")
    assert done.code == 0
    assert done.out.splitlines() == [
        "cassettes/imported/greet/0.jsonl: 2 turns from talk.json (messages)",
        "cassettes/imported/run-1/0.jsonl: 3 turns and 1 tool result from"
        " run-1/agent/trajectory.json (ATIF)",
        "",
        "suites/imported: 2 tasks; to replay them: harness run suites/imported",
        "",
        "Each is replayed in order, the n-th model call gets the n-th answer:",
        '  with harness.cassette.use("cassettes/imported/greet/0.jsonl"):',
    ]
    done = harness(
        "cassette", "export", "cassettes/imported/greet/0.jsonl", "--format", "messages",
        "-o", "out/greet.jsonl",
    )  # fmt: skip
    assert (done.code, done.out) == (0, "out/greet.jsonl: 1 conversation\n")
    value = json.loads(Path("out/greet.jsonl").read_text())
    assert value["messages"] == PLAIN
    assert harness("cassette", "show", "cassettes/imported/run-1/0.jsonl").code == 0


def test_vcrpys_cassettes_become_ours_and_come_out_again(harness: Harness):
    in_file(Path("in/test_x/a.yaml"), yaml.safe_dump(cassette(SHAPES["gzip"])))
    done = harness("import", "vcr", "in", "--out", "ours")
    assert done.code == 0
    assert done.out.splitlines() == [
        "ours/test_x/a/0.jsonl: 1 interaction from in/test_x/a.yaml (vcrpy cassette)",
        "",
        "Each request is answered as it was:",
        '  with harness.cassette.use("ours/test_x/a/0.jsonl"):',
    ]
    made = "ours/test_x/a/0.jsonl"
    done = harness("cassette", "export", made, "--format", "vcr", "-o", "a.yaml")
    assert done.code == 0
    assert "1 interaction" in done.out
    [pair] = yaml.safe_load(Path("a.yaml").read_text())["interactions"]
    assert pair["request"]["uri"] == "https://api.openai.com/v1/chat/completions"
    assert json.loads(pair["request"]["body"]) == json.loads(SHAPES["texts"][0]["body"])
    assert json.loads(pair["response"]["body"]["string"]) == json.loads(
        SHAPES["texts"][1]["body"]["string"]
    )


def test_what_was_made_is_told_as_json(harness: Harness):
    in_file(Path("talk.json"), {"messages": [*MESSAGES, {"role": "user", "content": "and?"}]})
    done = harness("import", "conversation", "talk.json", "--out", "mine/x.jsonl", "--json")
    assert json.loads(done.out) == {
        "cassettes": [
            {
                "file": "mine/x.jsonl",
                "from": "talk.json",
                "format": "messages",
                "interactions": 3,
                "tool_results": 1,
                "left_out": ["messages after the last answer: 1"],
            }
        ]
    }
    done = harness("cassette", "export", "mine/x.jsonl", "--format", "vcr", "-o", "v", "--json")
    assert json.loads(done.out) == {"file": "v", "format": "vcr", "count": 3}


def test_key_values_of_the_environment_are_removed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MINE_API_KEY", "tell-nobody")
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "tell-nobody"}]
    in_file(Path("talk.json"), {"messages": messages})
    assert harness("import", "conversation", "talk.json").code == 0
    assert "tell-nobody" not in Path("cassettes/imported/talk/0.jsonl").read_text()


@pytest.mark.parametrize("command", ["conversation", "vcr"])
def test_a_file_that_cannot_be_read_stops_the_import_whole(command: str, harness: Harness):
    good = {"messages": PLAIN} if command == "conversation" else cassette(SHAPES["texts"])
    in_file(Path("good.json"), good)
    in_file(Path("bad.json"), '{"x": 1}')
    done = harness("import", command, "good.json", "bad.json")
    assert done.code == 2
    assert done.err.startswith("error: bad.json: ")
    assert not Path("cassettes").exists()


def test_what_is_there_stays_as_it_is(harness: Harness):
    in_file(Path("talk.json"), {"messages": PLAIN})
    assert harness("import", "conversation", "talk.json").code == 0
    done = harness("import", "conversation", "talk.json")
    assert (done.code, "talk/0.jsonl: is there already" in done.err) == (2, True)
    made = "cassettes/imported/talk/0.jsonl"
    done = harness("cassette", "export", made, "--format", "vcr", "-o", "talk.json")
    assert (done.code, done.err.startswith("error: talk.json: is there already")) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("import", "conversation", "none.json"), "'none.json' does not exist"),
        (("import", "conversation"), "Missing argument"),
        (("import", "vcr", ".", "--out", "x.jsonl"), "no file in it ends with"),
        (
            ("import", "conversation", "a.json", "a.json", "--out", "x.jsonl"),
            "x.jsonl: one file for 2 recordings",
        ),
        (("cassette", "export", "none", "--format", "vcr", "-o", "x"), "none: no such file"),
        (("cassette", "export", "a.json", "--format", "har", "-o", "x"), "'har' is not one of"),
        (
            ("cassette", "export", "a.json", "--format", "messages", "-o", "x", "--base-url", "h"),
            "--base-url 'h': only --format vcr",
        ),
        (
            ("cassette", "export", "a.json", "--format", "vcr", "-o", "x"),
            "a.json:1: not a cassette",
        ),
    ],
)
def test_wrong_use_is_an_error_in_one_line(
    arguments: tuple[str, ...], problem: str, harness: Harness, tmp_path: Path
):
    if "." not in arguments:
        in_file(tmp_path / "a.json", {"messages": PLAIN})
    done = harness(*arguments)
    assert done.code == 2
    assert problem in done.err
    assert len(done.err.splitlines()) == 1


def test_a_cassette_without_conversations_has_none_to_export(harness: Harness):
    asked: dict[str, object] = {"method": "GET", "uri": "http://a/", "body": None}
    pair = (asked, {"status": {"code": 200}, "headers": {}, "body": {"string": "x"}})
    in_file(Path("a.json"), cassette(pair))
    assert harness("import", "vcr", "a.json").code == 0
    made = "cassettes/imported/a/0.jsonl"
    done = harness("cassette", "export", made, "--format", "messages", "-o", "x")
    assert (done.code, "holds no conversation" in done.err) == (2, True)
    assert not Path("x").exists()


def test_harbors_trials_become_a_run_that_is_compared_shown_and_listed(harness: Harness):
    for name, tokens in (("skills", 106), ("plain", 268)):
        used = {"n_input_tokens": tokens, "n_cache_tokens": None, "n_output_tokens": tokens // 2}
        story = None if name == "skills" else EPISODES
        agent = {**used, "cost_usd": None}
        trial(Path("jobs", name, f"count__{name}"), story=story, agent_result=agent)
    done = harness(
        "import", "harbor", "jobs", "--variant", "skills=skills/*", "--variant", "plain=*plain",
        "--variant", "rest=*skills", "--out", "reports/h",
    )  # fmt: skip
    assert done.code == 2
    assert "rest=*skills: it takes no trial" in done.err
    assert not Path("reports").exists()
    done = harness(
        "import", "harbor", "jobs", "--variant", "plain=*plain", "--variant", "skills=*skills",
        "--out", "reports/h",
    )  # fmt: skip
    assert done.code == 0
    assert "2 trials imported into reports/h\nCompare: harness compare reports/h" in done.out
    table = harness("compare", "h").out.splitlines()
    assert "  Iterations: 1 pair left out, not told by the imported files." in table
    assert [
        line.split()[:5] for line in table if line.lstrip().startswith(("input", "output"))
    ] == [
        ["input", "1", "268", "106", "×0.40"],
        ["output", "1", "134", "53.0", "×0.40"],
    ]
    assert "New Terminal Output:" in harness("show", "h", "count-lines/plain/0").out
    page = Path("reports/h/report.html").read_text()
    assert "Harbor, which ran the trials" in page
    assert "from the cassette" not in page
    done = harness("baseline", "update", "h")
    assert done.code == 2
    assert "its trials were imported from Harbor" in done.err
    done = harness("check", "h")
    assert done.code == 2
    assert "of which no baseline is made; hold it against another run: harness compare" in done.err
    done = harness("fork", "h", "count-lines/plain/0", "--turn", "1")
    assert (done.code, "was imported from Harbor" in done.err) == (2, True)


def test_a_trial_that_never_ended_and_one_that_no_variant_takes_are_told(harness: Harness):
    for name in ("a", "b"):
        trial(Path("jobs", f"count__{name}"))
    Path("jobs/count__c").mkdir()
    Path("jobs/count__c/trial.log").touch()
    done = harness("import", "harbor", "jobs", "--variant", "v=*a", "--out", "r", "--json")
    assert json.loads(done.out)["left_out"] == [
        "jobs/count__c: never ended, it has no result.json",
        "jobs/count__b: no --variant takes it",
    ]


@pytest.mark.skipif("HARNESS_DATA" not in os.environ, reason="set HARNESS_DATA to real trials")
def test_real_trials_show_what_skills_save(harness: Harness):
    folders = sorted(Path(os.environ["HARNESS_DATA"], "trials").glob("3d-scan-calc__*"))
    assert harness("import", "harbor", *map(str, folders), "--out", "reports/real").code == 0
    found = json.loads(harness("compare", "real", "--json").out)["comparisons"][0]
    assert [
        (part["name"], part["baseline_mean"], part["candidate_mean"])
        for part in found["token_parts"]
    ] == [("input", 26_849, 10_618), ("output", 4_157, 1_006)]
    assert found["candidate"] == "terminus-2-gemini3flash-skills"
    assert harness("show", "real", f"3d-scan-calc/{found['baseline']}/0").code == 0


def test_harbors_trials_keep_their_agent_and_unknown_numbers_stay_unknown(harness: Harness):
    model = {"name": "tiny-1", "provider": "gemini"}
    agents = {
        "a": {"name": "terminus-2", "version": "2.0.0", "model_info": model},
        "b": {"name": "terminus-2", "version": "2.0.0", "model_info": model},
        "c": {"name": "other", "version": "", "model_info": None},
    }
    for name, agent in agents.items():
        story = None if name == "a" else EPISODES
        trial(Path("jobs", f"count__{name}"), story=story, agent_info=agent)
    globs = [part for name in agents for part in ("--variant", f"v{name}=*__{name}")]
    assert harness("import", "harbor", "jobs", *globs, "--out", "reports/h").code == 0
    assert harness("report", "h", "--format", "harbor", "-o", "out").code == 0
    found = {}
    for path in Path("out/harbor/h").glob("*/result.json"):
        result = json.loads(path.read_text())
        found[result["agent_result"]["metadata"]["variant"]] = (result, path.parent)
    told = {name: result["agent_info"] for name, (result, _) in found.items()}
    # One agent and model in two variants: tables would take them for the same.
    assert told == {
        "va": {"name": "terminus-2-va", "version": "2.0.0", "model_info": model},
        "vb": {"name": "terminus-2-vb", "version": "2.0.0", "model_info": model},
        "vc": {
            "name": "other",
            "version": "unknown",
            "model_info": {"name": "tiny-1", "provider": "openai"},
        },
    }
    names = ("iterations", "model_calls", "tool_calls_made")
    metadata = {name: result["agent_result"]["metadata"] for name, (result, _) in found.items()}
    assert [metadata["va"][name] for name in names] == [None, None, None]
    assert [metadata["vb"][name] for name in names] == [2, 2, None]
    assert not (found["va"][1] / "agent/answer.txt").exists()
    assert (found["vb"][1] / "agent/answer.txt").read_text() == "There are 3.\n"
    page = parse(Path("reports/h/report.html").read_text())
    [first, second, _] = page.one("table", css="variants").one("tbody").all("tr")
    assert "is the baseline" in first.text
    assert "Harbor does not tell" in second.text
    parts = page.all("tr", css="part")
    assert [row.one("th").text for row in parts] == ["input tokens", "output tokens"] * 2


def test_a_folder_of_conversations_is_taken_and_what_is_none_is_named(harness: Harness):
    for name in ("b", "a"):
        in_file(Path(f"jobs/{name}/agent/trajectory.json"), {"messages": MESSAGES})
    in_file(Path("jobs/a/result.json"), {"task_name": "a"})
    in_file(Path("jobs/a/trial.log"), "not looked at")
    Path("jobs/folder.json").mkdir()
    done = harness("import", "conversation", "jobs")
    assert done.code == 0
    assert "cassettes/imported/a/0.jsonl: 3 turns" in done.out
    assert "cassettes/imported/b/0.jsonl: 3 turns" in done.out
    assert "left out, no conversation: jobs/a/result.json" in done.out
    assert "trial.log" not in done.out
    in_file(Path("c.json"), {"messages": MESSAGES})
    done = harness("import", "conversation", "c.json")
    assert "suites/imported: 1 task added, 3 in all; to replay them" in done.out
    Path("jobs/b/agent/trajectory.json").unlink()
    done = harness("import", "conversation", "jobs/b")
    assert (done.code, "jobs/b: no recorded conversation is in this folder" in done.err) == (
        2,
        True,
    )
    in_file(Path("jobs/b/broken.json"), "{")
    done = harness("import", "conversation", "jobs", "--out", "again/imported")
    assert (done.code, "jobs/b/broken.json: not JSON" in done.err) == (2, True)
    assert not Path("again").exists()
