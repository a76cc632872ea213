"""Task folders as BenchFlow has them: settings and instruction in one `task.md`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import BadInputError
from harness.loader.task.loading import load_task
from harness.schema.suite import Task
from tests.loader.suite_folders import write

HEAD = """
schema_version: '1.3'
metadata:
  difficulty: easy
  created: 2026-01-02
agent:
  timeout_sec: 300
verifier:
  type: test-script
  service: main
  timeout_sec: 120
environment:
  cpus: 1
  memory_mb: 2048
  network_mode: none
oracle:
  env: {A: b}
"""


def document(folder: Path, head: str = HEAD, body: str = "\nMake `/app/x`.\n") -> Path:
    write(folder / "task.md", f"---\n{head.strip()}\n---\n{body}")
    write(folder / "environment" / "Dockerfile", "FROM ubuntu:24.04\nWORKDIR /app\n")
    write(folder / "verifier" / "test.sh", "uvx --with a pytest /verifier/x.py\n")
    write(folder / "oracle" / "solve.sh", "true\n")
    return folder


def told(task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert task.environment is not None
    return task.environment.ignored, task.environment.needs


def test_a_document_is_a_task(tmp_path: Path):
    folder = document(tmp_path / "t")
    task = load_task(folder)
    (step,) = task.steps
    assert (task.name, task.instruction) == ("t", "Make `/app/x`.")
    assert task.environment is not None
    assert (task.environment.workdir, task.environment.memory_mb) == ("/app", 2048)
    assert (step.agent_timeout_s, step.verifier.timeout_s) == (300, 120)
    assert (step.verifier.tests, step.verifier.place) == ((folder / "verifier",), "/verifier")
    assert step.verifier.equipment.tools == (("a", "pytest"),)
    assert step.solution is not None
    assert (step.solution.folder, step.solution.place) == (folder / "oracle", "/oracle")
    assert step.solution.env == {"A": "b"}
    assert told(task) == (("environment.cpus: processes take what the host has",), ())


def test_older_names_of_the_folders_keep_their_places(tmp_path: Path):
    folder = document(tmp_path / "t")
    (folder / "verifier").rename(folder / "tests")
    (folder / "oracle").rename(folder / "solution")
    (step,) = load_task(folder).steps
    assert (step.verifier.tests, step.verifier.place) == ((folder / "tests",), "/tests")
    assert step.solution is not None
    assert step.solution.place == "/solution"


def test_a_document_wins_over_a_task_toml(tmp_path: Path):
    folder = document(tmp_path / "t")
    write(folder / "task.toml", "not even TOML")
    write(folder / "instruction.md", "Do something else.")
    assert load_task(folder).instruction == "Make `/app/x`."


@pytest.mark.parametrize(
    ("body", "instruction"),
    [
        ("One.\n\n## Two\n\n---\nThree.\n", "One.\n\n## Two\n\n---\nThree."),
        ("## prompt\n\nDo it.\n\n## role:critic\n\nBe strict.\n", "Do it."),
        ("Before.\n\n## user-persona\nYou are tired.\n", "Before."),
        ("## Prompt\n\\## prompt\nDo it.\n", "## prompt\nDo it."),
        ("<!-- canary GUID 1 -->\n\nDo it.\n", "Do it."),
    ],
)
def test_the_instruction_is_the_body_or_its_section(tmp_path: Path, body: str, instruction: str):
    assert load_task(document(tmp_path / "t", body=body)).instruction == instruction


def test_short_forms_mean_what_they_stand_for(tmp_path: Path):
    folder = document(tmp_path / "t", "name: t\nimage: python:3.12\nverifier: verifier/\n")
    (folder / "environment" / "Dockerfile").unlink()
    task = load_task(folder)
    assert task.environment is not None
    assert task.environment.docker_image == "python:3.12"
    assert told(task) == (("task.md: verifier: means nothing here",), ())
    other = document(tmp_path / "u", "sandbox: {workdir: /srv}\n")
    environment = load_task(other).environment
    assert environment is not None
    assert environment.workdir == "/srv"


@pytest.mark.parametrize(
    ("head", "need"),
    [
        ("scenes: [{name: a}, {name: b}]", "task.md: scenes: several agents that take turns"),
        ("user: {persona: x}", "task.md: user: somebody to talk to"),
        (
            "verifier: {type: llm-judge}",
            "task.md: verifier.type = 'llm-judge': only tests judge here",
        ),
        (
            "verifier: {service: db}",
            "task.md: verifier.service = 'db': a container of its own",
        ),
    ],
)
def test_what_needs_others_makes_a_task_impossible(tmp_path: Path, head: str, need: str):
    assert told(load_task(document(tmp_path / "t", head)))[1] == (need,)


def test_keys_of_the_document_alone_are_listed(tmp_path: Path):
    head = "agents: {roles: {a: {}}}\nbenchflow: {document_version: '0.6'}\nagnet: {}"
    assert told(load_task(document(tmp_path / "t", head)))[0] == (
        "task.md: agents: means nothing here",
        "task.md: benchflow: means nothing here",
        "task.md: agnet: unknown key; did you mean 'agent'?",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no front matter", ["must begin with a front matter"]),
        ("---\na: 1\n", ["must begin with a front matter"]),
        ("---\n[1]\n---\nx", ["must be a table"]),
        ("---\na: [\n---\nx", ["not valid YAML", "line 3"]),
        ("---\n2026-01-02: x\n---\nx", ["keys that are no text"]),
        ("---\na: &a [*a]\n---\nx", ["circles"]),
        ("---\nagent: {timeout_sec: soon}\n---\nx", ["agent.timeout_sec = 'soon'", "number"]),
        ("---\noracle: {}\nsolution: {}\n---\nx", ["'oracle' and 'solution'"]),
        ("---\n{}\n---\n\n", ["empty"]),
    ],
)
def test_a_mistake_in_a_document_is_named_with_its_file(
    tmp_path: Path, text: str, words: list[str]
):
    folder = document(tmp_path / "t")
    write(folder / "task.md", text)
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    for word in (str(folder / "task.md"), *words):
        assert word in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_verifier_is_named(tmp_path: Path):
    folder = document(tmp_path / "t")
    (folder / "verifier" / "test.sh").unlink()
    with pytest.raises(BadInputError, match=r"verifier/test\.sh: no such file"):
        load_task(folder)


@pytest.mark.parametrize("file", ["task.md", "environment/Dockerfile", "verifier/test.sh"])
def test_the_digest_follows_what_a_trial_depends_on(tmp_path: Path, file: str):
    folder = document(tmp_path / "t")
    before = load_task(folder)
    write(folder / file, f"{(folder / file).read_text()}\n# changed\n")
    after = load_task(folder)
    assert after.digest != before.digest
    assert (after.tests_digest != before.tests_digest) == file.startswith("verifier")


YAML_TEXT = st.text(alphabet="ab:-[]{}&*!|>'\"#?,% \n\t01.", max_size=40)


@given(YAML_TEXT, st.text(alphabet="#-\\ prompt:\n", max_size=30))
def test_any_text_gives_a_task_or_an_error_for_its_author(
    tmp_path_factory: pytest.TempPathFactory, head: str, body: str
):
    folder = document(tmp_path_factory.getbasetemp() / "any-document")
    write(folder / "task.md", f"---\n{head}\n---\n{body}")
    with suppress(BadInputError):
        assert load_task(folder).instruction
