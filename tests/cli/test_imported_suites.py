"""Conversations of others, run again."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cassette.convert.samples import PLAIN, atif, in_file
from tests.cli.conftest import Harness
from tests.report.page import parse

PROMPT = """You solve tasks on a terminal. Answer in JSON:

{"analysis": "...", "plan": "...", "commands": [{"keystrokes": "ls\\n", "duration": 0.1}]}

Task Description:
Count the lines of `notes.txt`.

Write the number to `count.txt`.


Current terminal state:
Current Terminal Screen:
"""
SKILLED = PROMPT.replace(
    "Task Description:",
    """available_skills:
[{"name": " # # counting", "description": "How to: count", "location": "/root/.skills/counting"},
 {"name": "../../escape", "description": "", "location": ""},
 {"name": "sorting", "description": "How to sort"}]
To load a skill, respond with ONLY this JSON: {"load_skill": "skill-name"}

Task Description:""",
)
LOADED = """Loaded skill: counting
---
---
name: counting
description: "How to: count"
---

# Counting

Use wc -l.

Current Terminal Screen:
"""


def turn(*typed: str, complete: bool = False) -> str:
    answer = {
        "analysis": "Looking.",
        "plan": "Typing.",
        "commands": [{"keystrokes": text, "duration": 0.1} for text in typed],
        "task_complete": complete,
    }
    return f"```json\n{json.dumps(answer)}\n```"


def told(*texts: str, **meta: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"messages": messages, "meta": meta}


OUTPUT = "New Terminal Output:\n12 notes.txt\n"
SURE = "Current terminal state:\n\nAre you sure you want to mark the task as complete?"
CONFIRMED = told(
    PROMPT, turn("wc -l notes.txt\n", "ls\n"), OUTPUT,
    turn(complete=True), SURE, turn(complete=True),
    task="confirmed", model="tiny-1",
)  # fmt: skip
CUT = told(PROMPT, turn("ls\n"), OUTPUT, turn("ls\n"), task="cut", model="tiny-1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def imported(harness: Harness, *options: str, **conversations: Any) -> None:
    for name, value in conversations.items():
        in_file(Path(f"{name}.json"), value)
    paths = (f"{name}.json" for name in conversations)
    done = harness("import", "conversation", *paths, *options)
    assert (done.code, done.err) == (0, "")


def run(harness: Harness, *options: str, out: str = "run") -> dict[str, dict[str, Any]]:
    """The trials of a replay by task."""
    done = harness("run", "suites/imported", "--out", out, *options)
    assert (done.code, done.err) == (0, "")
    lines = Path(out, "trials.jsonl").read_bytes().splitlines()
    return {trial["task"]: trial for trial in map(json.loads, lines)}


def settings(path: str) -> Any:
    return tomllib.loads(Path("suites/imported", path).read_text())


def test_a_terminal_conversation_replays_turn_for_turn_to_its_end(harness: Harness):
    imported(harness, a=CONFIRMED)
    task = Path("suites/imported/confirmed")
    assert (task / "instruction.md").read_text() == (
        "Count the lines of `notes.txt`.\n\nWrite the number to `count.txt`.\n"
    )
    assert not (task / "tests").exists()
    [trial] = run(harness).values()
    assert (trial["termination_reason"], trial["outcome"]) == ("completed", None)
    assert (trial["model_calls"], trial["served"], trial["variant"]) == (3, 3, "terminus2")
    story = json.loads(Path("run", trial["trajectory"]).read_text())
    said = [one for one in story["messages"] if one["role"] == "assistant"]
    assert len(said) == 3
    results = [
        block
        for one in story["messages"]
        for block in one["content"]
        if block["type"] == "tool_result"
    ]
    assert [one["content"].strip() for one in results[:2]] == ["", OUTPUT.strip()]


def test_what_would_have_been_sent_differently_is_told_everywhere(harness: Harness):
    imported(harness, a=CONFIRMED)
    trial = run(harness)["confirmed"]
    changes = trial["request_changes"]
    assert trial["request_differences"] == len(changes) > 0
    assert changes[0]["call"] == 1
    assert "-You solve tasks on a terminal." in changes[0]["difference"]
    shown = harness("show", "run", "confirmed/terminus2/0").out
    assert "Model call 1 is not as recorded, in message" in shown
    assert "      -You solve tasks on a terminal." in shown
    page = Path("run/report.html").read_text()
    assert "Model calls that said something else than what is recorded" in page
    told_again = harness("run", "suites/imported").out
    assert f"{len(changes)} model calls in 1 trial said something else" in told_again
    assert "      -You solve tasks on a terminal." in told_again


def test_a_conversation_that_a_limit_cut_ends_at_a_limit(harness: Harness):
    unsure = told(PROMPT, turn("ls\n"), OUTPUT, turn(complete=True), task="unsure")
    imported(harness, a=CONFIRMED, b=CUT, c=unsure, d=told(*(one["content"] for one in PLAIN)))
    trials = run(harness)
    assert {
        name: (one["variant"], one["termination_reason"], one["model_calls"])
        for name, one in trials.items()
    } == {
        "confirmed": ("terminus2", "completed", 3),
        "cut": ("terminus2", "max_iterations", 2),
        "unsure": ("terminus2", "completed", 2),
        "d": ("default", "completed", 2),
    }
    assert settings("cut/task.toml")["metadata"]["harness"]["expected_endings"] == [
        "max_iterations"
    ]


def test_skills_that_were_told_of_are_there_again(harness: Harness):
    imported(harness, a=told(SKILLED, '{"load_skill": "counting"}', LOADED, turn(complete=True)))
    skills = Path("suites/imported/a/environment/skills")
    assert sorted(path.name for path in skills.iterdir()) == ["counting", "escape", "sorting"]
    assert (skills / "counting/SKILL.md").read_text() == (
        "---\ndescription: 'How to: count'\nname: counting\n---\n\n# Counting\n\nUse wc -l.\n"
    )
    assert "nobody loaded it" in (skills / "sorting/SKILL.md").read_text()
    [variant] = settings("suite.toml")["variants"]
    assert (variant["preset"], variant["skills"]) == ("terminus2-skills", "curated")


def test_further_conversations_are_added_and_nothing_is_written_over(harness: Harness):
    imported(harness, a=CONFIRMED)
    imported(harness, b=CUT)
    [variant] = settings("suite.toml")["variants"]
    assert (variant["name"], "tasks" in variant) == ("terminus2", False)
    assert len(run(harness)) == 2
    before = Path("suites/imported/suite.toml").read_text()
    in_file(Path("c.json"), told("Hi", "Hello", task="c"))
    Path("suites/imported/suite.toml").write_text(before.replace("repeats = 1", "repeats = 2"))
    done = harness("import", "conversation", "c.json")
    assert done.code == 2
    assert "suite.toml: not as an import wrote it" in done.err
    Path("suites/imported/suite.toml").write_text(before)
    Path("suites/imported/c").mkdir()
    done = harness("import", "conversation", "c.json")
    assert (done.code, "imported/c: is there already" in done.err) == (2, True)
    assert not Path("cassettes/imported/c").exists()


def test_conversations_of_one_name_are_repeats(harness: Harness):
    again = told(
        PROMPT,
        turn("ls\n"),
        OUTPUT,
        turn(complete=True),
        SURE,
        turn(complete=True),
        task="confirmed",
    )
    imported(harness, a=CONFIRMED, b=again)
    assert harness("run", "suites/imported", "--out", "run").code == 0
    assert len(Path("run/trials.jsonl").read_text().splitlines()) == 2


def test_another_place_is_named_in_the_command_that_replays_it(harness: Harness):
    in_file(Path("a.json"), CONFIRMED)
    done = harness(
        "import", "conversation", "a.json", "--out", "kept/old", "--suite", "mine", "--json"
    )
    data = json.loads(done.out)
    assert (data["suite"], data["run"]) == ("mine", "harness run mine --cassettes kept")
    assert harness(*data["run"].split()[1:]).code == 0
    done = harness("import", "conversation", "a.json", "--out", "x.jsonl", "--suite", "mine")
    assert (done.code, "x.jsonl is one file" in done.err) == (2, True)


def real_task() -> None:
    """A task of somebody's own, judged by the file that the recorded commands write."""
    task = Path("suites/real/count")
    in_file(task / "task.toml", '[metadata.harness]\ntools = ["keystrokes"]\n')
    in_file(task / "instruction.md", "Count.")
    in_file(task / "environment/workspace/notes.txt", "a\nb\n")
    in_file(
        task / "tests/test.sh",
        'test "$(cat /workspace/count.txt)" = 2; echo $((1 - $?)) > /logs/verifier/reward.txt\n',
    )


def test_a_conversation_is_put_beside_a_task_that_is_there(harness: Harness):
    in_file(Path("a.json"), CONFIRMED)
    real_task()
    done = harness("import", "conversation", "a.json", "--into", "real/count", "--json")
    data = json.loads(done.out)
    assert data["cassettes"][0]["file"] == "cassettes/real/count/0.jsonl"
    assert data["run"].startswith(
        "harness run suites/real --task count --tools live --preset terminus2 --set"
    )
    replay = [part for part in data["run"].split()[1:] if part not in ("--tools", "live")]
    done = harness(*replay, "--json")
    [totals] = json.loads(done.out)["runs"][0]["totals"]
    assert (done.code, totals["endings"]) == (0, {"completed": 1})
    done = harness("import", "conversation", "a.json", "--into", "real/nothing")
    assert (done.code, "--into 'real/nothing'" in done.err) == (2, True)
    done = harness("import", "conversation", "a.json", "--into", "real/count", "--out", "x")
    assert (done.code, "leave --out and --suite out" in done.err) == (2, True)


def test_recorded_commands_drive_the_real_task_and_what_they_show_is_compared(harness: Harness):
    real_task()
    model = '[model]\nprovider = "openai"\nname = "tiny"'
    variant = '[[variants]]\nname = "v"\npreset = "terminus2"'
    head = 'name = "real"\nversion = 1\nsystem = ""'
    in_file(Path("suites/real/suite.toml"), "\n\n".join([head, model, variant]))
    script = "cat > copy.py << 'EOF'\nimport shutil\n\nshutil.copy('notes.txt', 'b.txt')\nEOF\n"
    typed = turn("wc -l notes.txt\n", "wc -l < notes.txt > count.txt\n", script)
    talk = [PROMPT, typed, "New Terminal Output:\n2 notes.txt", turn("cat count.txt\n")]
    talk += ["New Terminal Output:\nroot@box:/workspace# cat count.txt\n3", turn(complete=True)]
    in_file(Path("a.json"), told(*talk, SURE, turn(complete=True)))
    assert harness("import", "conversation", "a.json", "--into", "real/count").code == 0
    done = harness("run", "real", "--tools", "live", "--out", "run")
    assert done.code == 0
    assert "1 tool call in 1 trial gave something else" in done.out
    trial = json.loads(Path("run/trials.jsonl").read_bytes())
    assert (trial["outcome"], trial["termination_reason"]) == ("passed", "completed")
    [change] = trial["tool_changes"]
    assert "cat count.txt" in change["summary"]
    assert {"-3", "+2"} < set(change["difference"].splitlines())


def test_tools_of_others_are_answered_as_recorded(harness: Harness):
    story = atif()
    story["steps"] = story["steps"][:4]
    schema = {"type": "object", "properties": {"file": {"type": "string", "default": None}}}
    spec = {"name": "count", "description": 'How "long"?', "parameters": schema}
    story["agent"]["tool_definitions"] = [{"type": "function", "function": spec}]
    imported(harness, a=story, b=atif("ATIF-v1.0"))
    trials = run(harness)
    assert (trials["a"]["termination_reason"], trials["a"]["tool_calls_made"]) == ("completed", 1)
    told_again = json.loads(Path("run", trials["a"]["trajectory"]).read_text())
    [result] = [block for block in told_again["messages"][2]["content"] if "call_id" in block]
    assert (result["content"], result["is_error"]) == ("12 lines", False)
    # In the other one somebody talks on after an answer, and no tool is declared.
    assert (trials["b"]["termination_reason"], trials["b"]["tool_calls_made"]) == (
        "completed",
        1,
    )
    live = run(harness, "--tools", "live", "--task", "a", out="live")
    assert "is not here" in live["a"]["tool_changes"][0]["summary"]
    assert live["a"]["outcome"] is None


@pytest.mark.skipif("HARNESS_DATA" not in os.environ, reason="set HARNESS_DATA to real data")
def test_real_conversations_reproduce_their_turns_and_endings(harness: Harness):
    data = Path(os.environ["HARNESS_DATA"])
    sources = sorted(data.glob("conversations/haiku-4.5__*.json"))
    sources += data.glob("trials/3d-scan-calc__TmjJ44a/conversation.json")
    assert len(sources) == 7
    assert harness("import", "conversation", *map(str, sources)).code == 0
    trials = run(harness)
    for source in sources:
        recorded = json.loads(source.read_text())
        answers = [one["content"] for one in recorded["messages"] if one["role"] == "assistant"]
        trial = trials[recorded["task"]]
        assert trial["termination_reason"] == "completed", recorded["task"]
        assert (trial["model_calls"], trial["served"]) == (len(answers), len(answers))
        story = json.loads(Path("run", trial["trajectory"]).read_text())
        said = [one["content"] for one in story["messages"] if one["role"] == "assistant"]
        assert len(said) == len(answers)
        for blocks, answer in zip(said, answers, strict=True):
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            vendor = [block["data"]["text"] for block in blocks if block["type"] == "vendor"]
            assert answer in (*vendor, "".join(texts))
        # The first prompt is our own; of what came later nothing recorded is lost but one wording.
        later = [one["difference"] for one in trial["request_changes"] if one["call"] > 1]
        lost = {line for diff in later for line in diff.splitlines()[2:] if line[:1] == "-"}
        assert lost <= {
            "-Missing required fields: plan, commands",
            "-Please fix these issues and provide a proper response.",
        }


@pytest.mark.parametrize(
    "odd", ['a "b" \\ c', "line\nline\r\t", "\x00\x1f\x7f\u2028", "'''\"\"\" 😀"]
)
def test_whatever_a_recording_says_is_what_the_suite_says(odd: str, harness: Harness):
    talk = told("Hi", "Hello", model=odd, task="odd")
    talk["messages"].insert(0, {"role": "system", "content": f"Say {odd}."})
    imported(harness, a=talk)
    written = odd.replace("\0", "\ufffd")
    assert settings("odd/task.toml")["metadata"]["harness"]["system"] == f"Say {written}."
    assert settings("odd/task.toml")["metadata"]["harness"]["model"]["name"] == written
    assert run(harness)["odd"]["termination_reason"] == "completed"


@pytest.mark.parametrize(
    ("log", "provider"),
    [
        (
            {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
            "anthropic",
        ),
        ({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, "openai"),
    ],
)
def test_a_call_log_is_asked_for_in_its_own_format(
    log: dict[str, Any], provider: str, harness: Harness
):
    answers: dict[str, dict[str, Any]] = {
        "anthropic": {
            "type": "message", "role": "assistant", "id": "m1", "model": "m",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
        "openai": {
            "model": "m", "object": "chat.completion", "id": "c1",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "Hello"},
                 "finish_reason": "stop"}
            ],
        },
    }  # fmt: skip
    line = {"request": {"body": log}, "response": {"status_code": 200, "body": answers[provider]}}
    in_file(Path("log.jsonl"), json.dumps(line) + "\n")
    assert harness("import", "conversation", "log.jsonl").code == 0
    [trial] = run(harness).values()
    assert (trial["termination_reason"], trial["served"]) == ("completed", 1)
    assert settings("log/task.toml")["metadata"]["harness"]["model"]["provider"] == provider


def test_what_harbor_writes_of_terminus_replays_as_calls(harness: Harness):
    def call(name: str, number: int, **arguments: Any) -> dict[str, Any]:
        return {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}

    story = atif()
    typed = [call("bash_command", at, keystrokes="ls\n", duration=1) for at in range(2)]
    done = call("mark_task_complete", 3)
    told_after = [{"content": "New Terminal Output:\nx"}]
    story["steps"] = [
        {"step_id": 1, "source": "user", "message": PROMPT},
        {"step_id": 2, "source": "agent", "message": "Analysis: a\nPlan: b", "tool_calls": typed,
         "observation": {"results": told_after}},
        {"step_id": 3, "source": "agent", "message": "Done?", "tool_calls": [typed[0], done],
         "observation": {"results": [{"source_call_id": "c0", "content": "Sure?"}]}},
        {"step_id": 4, "source": "agent", "message": "Analysis: done", "tool_calls": [done]},
    ]  # fmt: skip
    imported(harness, a=story)
    [trial] = run(harness).values()
    assert (trial["variant"], trial["model_calls"]) == ("default", 3)
    assert (trial["termination_reason"], trial["miss"]) == ("max_iterations", None)
    story = json.loads(Path("run", trial["trajectory"]).read_text())
    results = [
        block["content"]
        for one in story["messages"]
        for block in one["content"]
        if block["type"] == "tool_result"
    ]
    assert results == ["", "New Terminal Output:\nx", "Sure?", "", ""]


def step(source: str, message: str, *calls: str) -> dict[str, Any]:
    """A step of ATIF; a call of the agent's is answered."""
    made = [{"tool_call_id": f"{name}1", "function_name": name, "arguments": {}} for name in calls]
    results = [{"source_call_id": call["tool_call_id"], "content": "ok"} for call in made]
    told = {"tool_calls": made, "observation": {"results": results}} if made else {}
    return {"source": source, "message": message, **told}


def exported(system: str, *steps: dict[str, Any], repeat: int, ending: str) -> dict[str, Any]:
    """A trial as `harness report --format atif` writes it."""
    every = [step("system", system), step("user", "Count."), *steps]
    return {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "loop-harness", "version": "1", "model_name": "tiny"},
        "steps": [{"step_id": at, **one} for at, one in enumerate(every, start=1)],
        "extra": {
            "task": "count",
            "variant": "plain",
            "repeat": repeat,
            "termination_reason": ending,
        },
    }


def test_exported_trials_replay_to_their_endings_under_one_variant(harness: Harness):
    look, agent = step("agent", "", "look"), "agent"
    ask = step("user", "Sure?")
    answered = exported("One.", look, step(agent, "12."), repeat=0, ending="completed")
    asked = exported(
        "Two.",
        *(step(agent, "12?"), ask, look, step(agent, "12??"), ask, step(agent, "12.")),
        repeat=1,
        ending="completed",
    )
    handed = exported(
        "Three.",
        *(step(agent, "Hm."), step("user", "Go on."), step(agent, "", "output")),
        repeat=2,
        ending="completed",
    )
    gave_up = exported("Four.", look, step(agent, "12."), repeat=3, ending="no_output")
    imported(harness, a=answered, b=asked, c=handed, d=gave_up)
    trials = run(harness)
    assert {
        name: (one["variant"], one["termination_reason"], one["served"])
        for name, one in trials.items()
    } == {
        "count-plain-0": ("default", "completed", 2),
        "count-plain-1": ("default", "completed", 4),
        "count-plain-2": ("default", "completed", 2),
        "count-plain-3": ("default", "max_iterations", 2),
    }
    # That a talk ended with an answer does not say whether it was confirmed.
    assert {one["confirmed"] for one in trials.values()} == {None}
    # Each has its own system prompt; of one reply that was always the same nothing is lost.
    differing = {name: one["request_differences"] for name, one in trials.items()}
    assert differing == {
        "count-plain-0": 0,
        "count-plain-1": 0,
        "count-plain-2": 1,
        "count-plain-3": 0,
    }


@pytest.mark.parametrize("opening", ["Count.", "system"])
def test_terminus_is_known_by_its_answers_wherever_it_was_told(opening: str, harness: Harness):
    talk = told("Count.", turn("ls\n"), OUTPUT, turn(complete=True), SURE, turn(complete=True))
    if opening == "system":
        talk["messages"].insert(0, {"role": "system", "content": SKILLED})
    imported(harness, a=talk)
    [trial] = run(harness).values()
    preset = "terminus2-skills" if opening == "system" else "terminus2"
    assert (trial["variant"], trial["termination_reason"], trial["served"]) == (
        preset,
        "completed",
        3,
    )
    assert Path("suites/imported/a/environment/skills/counting").is_dir() is (opening == "system")


def test_a_page_of_imported_conversations_judges_nothing_and_tells_equal_differences_once(
    harness: Harness,
):
    warned = "Previous response had warnings:\nToo long.\n\n" + OUTPUT
    talk = [PROMPT]
    for number in range(3):
        # What stands around the difference is not the difference.
        talk += [turn("ls\n"), f"{warned}{number} more\n"]
    imported(
        harness,
        a=told(*talk, turn(complete=True), SURE, turn(complete=True), task="warned"),
        b=told("Hi", "Hello", task="plain"),
    )
    run(harness)
    page = parse(Path("run/report.html").read_text())
    # The variants have no task in common.
    assert not page.all(css="verdict")
    assert "has no task with trials of two variants" in page.one("section", id="verdicts").text
    notices = page.one("section", id="notices")
    assert "no verdict" not in notices.text
    assert "5 model calls in 1 trial said something else than what is recorded" in notices.text
    assert "Below is the most frequent difference; 3 of them have it." in notices.text
    assert [one.text for one in page.all(css="passed-of")] == ["–", "–"]
    trial = page.one("article", id="trial/warned/terminus2/0")
    [box] = trial.all("section", css="notice")
    assert "3 model calls (2, 3, 4) are not as recorded, in the same way; the first:" in box.text
    assert box.text.count("Too long.") == 1


def test_answers_that_came_to_no_use_are_told(harness: Harness):
    imported(harness, a=CONFIRMED)
    done = harness("run", "suites/imported", "--preset", "default", "--out", "run")
    trial = json.loads(Path("run/trials.jsonl").read_bytes())
    assert (trial["served"], trial["unused"]) == (1, 2)
    assert (
        "warning: 2 recorded answers of 1 trial came to no use, since the loop ended before the "
        "recording does; another --preset or limit may fit\n  confirmed/terminus2/0 (2)"
    ) in done.out
    page = Path("run/report.html").read_text()
    assert "1 trial was over before the recording is" in page
    assert "2 recorded answers: the loop ended before the recording does" in page
    assert "came to no use" not in harness("run", "suites/imported").out


def test_conversations_of_one_name_that_end_otherwise_are_tasks_of_their_own(harness: Harness):
    short = told(PROMPT, turn(complete=True), SURE, turn(complete=True), task="one")
    long = told(*(one["content"] for one in CONFIRMED["messages"]), task="one")
    cut = told(PROMPT, turn("ls\n"), task="two")
    other = told(PROMPT, turn("ls\n"), OUTPUT, turn("ls\n"), task="two")
    imported(harness, a=short, b=long)
    assert harness("run", "suites/imported", "--out", "first").code == 0
    lines = map(json.loads, Path("first/trials.jsonl").read_bytes().splitlines())
    assert [(one["trial_id"], one["termination_reason"], one["served"]) for one in lines] == [
        ("one/terminus2/0", "completed", 2),
        ("one/terminus2/1", "completed", 3),
    ]
    imported(harness, c=cut, d=other)
    trials = run(harness)
    assert {name: (one["termination_reason"], one["served"]) for name, one in trials.items()} == {
        "one": ("completed", 2),
        "two-0": ("max_iterations", 1),
        "two-1": ("max_iterations", 2),
    }


def test_a_number_takes_no_name_that_another_conversation_has(harness: Harness):
    imported(
        harness,
        a=told("Hi", "Hello", task="x"),
        b=told(PROMPT, turn(complete=True), SURE, turn(complete=True), task="x"),
        c=told("Hi", "Hello", task="x-0"),
    )
    assert sorted(run(harness)) == ["x-0", "x-1", "x-2"]
