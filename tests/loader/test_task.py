from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.errors import BadInputError, ConfigurationError
from harness.loader.task.loading import load_task
from harness.schema.environment import Solution
from harness.schema.loop_config import TerminationReason
from tests.loader.suite_folders import OUTPUT, make_task, write


def test_a_task_is_its_folder(tmp_path: Path):
    task = load_task(make_task(tmp_path / "count"))
    assert task.name == "count"
    assert task.instruction == "Count the lines."
    assert task.environment is not None
    assert task.environment.context == tmp_path / "count" / "environment" / "workspace"
    assert task.tests == tmp_path / "count" / "tests"
    (step,) = task.steps
    assert step.solution == Solution(folder=tmp_path / "count" / "solution")
    assert task.tools == ("shell", "read_file", "write_file", "list_dir")
    assert task.output is None
    assert step.verifier.timeout_s == 600


def test_keys_of_harbor_and_of_ours_are_read(tmp_path: Path):
    config = """
version = "1.0"
[task]
name = "org/count"
authors = [{name = "Ada", email = "ada@example.com"}]
keywords = ["text"]
[metadata]
difficulty = "easy"
created = 2026-01-02
[metadata.harness]
tools = ["list_dir", "shell"]
expected_endings = ["completed", "max_iterations"]
tags = ["text"]
model = {provider = "anthropic"}
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 30.5
[environment]
build_timeout_sec = 600
cpus = 1
memory = "2G"
allow_internet = false
skills_dir = "/skills"
"""
    task = load_task(make_task(tmp_path / "count", config=config))
    assert task.tools == ("list_dir", "shell")
    assert task.expected_endings == (
        TerminationReason.COMPLETED,
        TerminationReason.MAX_ITERATIONS,
    )
    assert task.tags == ("text",)
    assert task.model == {"provider": "anthropic"}
    (step,) = task.steps
    assert step.agent_timeout_s == 60
    assert step.verifier.timeout_s == 30.5


@pytest.mark.parametrize(
    "config",
    [
        "[environment]\nnetwork_mode = 'no-network'\nallow_internet = false\nallowed_hosts = []",
        "[agent]\nnetwork_mode = 'no-network'\n[verifier]\nallowed_hosts = []",
        "[metadata.harness]\ntools = ['list_dir']\n[metadata.harness.output]\n"
        "name = 'shell'\nschema = {}",
    ],
)
def test_what_asks_for_no_network_or_clashes_with_nothing_is_fine(tmp_path: Path, config: str):
    load_task(make_task(tmp_path / "count", config=config))


def test_leading_canary_lines_are_not_part_of_the_instruction(tmp_path: Path):
    text = "<!-- harbor-canary GUID 1234 -->\n# canary: do not train on this\n\n# Title\n\nDo it.\n"
    assert load_task(make_task(tmp_path / "t", instruction=text)).instruction == "# Title\n\nDo it."


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[[steps]]\nname = '../x'", ["steps[0].name = '../x'", "folder under steps/"]),
        (
            "[[steps]]\nname = 'a'\n[[steps]]\nname = 'A'",
            ["steps", "two steps have the same name"],
        ),
        ("[[steps]]\nname = 'one'", ["steps/one: no such folder"]),
        ("[environment]\nmemory = '2X'", ["environment.memory = '2X'", "write it like 512M or 2G"]),
        (
            "[environment]\nmemory = '2G'\nmemory_mb = 1024",
            ["environment.memory = '2G'", "contradicts memory_mb = 1024"],
        ),
        ("[environment]\nenv = {A = 1}", ["environment.env.A = 1", "string"]),
        (
            "[environment]\nnetwork_mode = 'some'",
            ["environment.network_mode = 'some'", "allowlist"],
        ),
        ("artifacts = [{source = '../x'}]", ["artifacts[0].source = '../x'", "'..'"]),
        (
            "artifacts = [{source = '/x', destination = '/y'}]",
            ["artifacts[0].destination = '/y'", "within the folder of artifacts"],
        ),
        (
            "[verifier]\nenvironment_mode = 'shared'\nenvironment = {cpus = 1}",
            ["verifier.environment_mode = 'shared'", "contradicts verifier.environment"],
        ),
        (
            "[agent]\ntimeout_sec = '3'",
            ["agent.timeout_sec = '3'", "number; write one, without quotes"],
        ),
        ("[metadata.harness]\ntool = []", ["metadata.harness.tool", "'tools'"]),
        ("[metadata.harness]\ntools = ['shel']", ["metadata.harness.tools[0] = 'shel'", "'shell'"]),
        (
            "[metadata.harness]\nexpected_endings = ['complete']",
            ["metadata.harness.expected_endings[0] = 'complete'", "'completed'"],
        ),
        ("[metadata.harness]\nskills = ['cook']", ["metadata.harness.skills", "'cook'", "none"]),
        ("[metadata.harness.output]\nname = 'x'", ["metadata.harness.output.schema", "missing"]),
        ("[agent]\ntimeout_sec = inf", ["agent.timeout_sec = inf", "finite"]),
        ("[verifier]\ntimeout_sec = nan", ["verifier.timeout_sec = nan", "finite"]),
        ("[environment]\ncpus = inf", ["environment.cpus", "inf", "finite"]),
        ("[metadata.harness]\ntools = ['shell', 'shell']", ["harness.tools", "'shell'", "twice"]),
        (
            "[metadata.harness.output]\nname = 'shell'\nschema = {}",
            ["metadata.harness.output.name = 'shell'", "choose another"],
        ),
        (
            "[metadata.harness.output]\nschema = {'$ref' = '#/definitions/gone'}",
            ["metadata.harness.output.schema", "$ref '#/definitions/gone' leads nowhere"],
        ),
        ("schema_version = '2.0'", ["schema_version = '2.0'", "only versions 1.x", 'write "1.4"']),
        ("schema_version = 1.4.", ["not valid TOML", "line 1"]),
    ],
)
def test_a_mistake_in_task_toml_is_named_with_file_and_key(
    tmp_path: Path, config: str, words: list[str]
):
    folder = make_task(tmp_path / "count", config=config)
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    message = str(raised.value)
    assert str(folder) in message
    assert "task.toml" in message or "steps/one" in message
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("missing", ["task.toml", "instruction.md", "tests", "environment"])
def test_a_missing_part_is_named(tmp_path: Path, missing: str):
    folder = make_task(tmp_path / "count")
    path = folder / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(BadInputError, match=f"{missing}.*no such"):
        load_task(folder)


def test_an_empty_instruction_is_refused(tmp_path: Path):
    with pytest.raises(BadInputError, match=r"instruction\.md: empty"):
        load_task(make_task(tmp_path / "count", instruction="\n<!-- canary -->\n"))


def test_an_instruction_that_is_not_utf8_is_refused(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    (folder / "instruction.md").write_bytes(b"caf\xe9")
    with pytest.raises(BadInputError, match="UTF-8"):
        load_task(folder)


def test_a_task_without_solution_loads(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    shutil.rmtree(folder / "solution")
    assert load_task(folder).steps[0].solution is None


def skill_file(folder: Path, name: str, text: str) -> Path:
    return write(folder / "environment" / "skills" / name / "SKILL.md", text)


def test_skills_are_read_in_order_of_their_folders(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    skill_file(folder, "b", "---\nname: sums\ndescription: adding\n---\n\nUse awk.\n---\nReally.\n")
    skill_file(folder, "a", "---\nname: logs\ndescription: reading\n---\nUse cut.\n")
    first, second = load_task(folder).skills
    assert (first.name, first.description, first.instructions) == ("logs", "reading", "Use cut.")
    assert (second.name, second.instructions) == ("sums", "Use awk.\n---\nReally.")


def test_a_task_may_name_the_skills_that_count(tmp_path: Path):
    folder = make_task(tmp_path / "count", config='[metadata.harness]\nskills = ["b"]')
    skill_file(folder, "a", "---\nname: a\ndescription: x\n---\nA")
    skill_file(folder, "b", "---\nname: b\ndescription: x\n---\nB")
    assert [skill.name for skill in load_task(folder).skills] == ["b"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Use awk.\n", "front matter"),
        ("---\nname: [\n---\nx", "not valid YAML"),
        ("---\njust text\n---\nx", "name and description"),
        ("---\nname: a\n---\nx", "description: missing"),
    ],
)
def test_a_mistake_in_a_skill_is_named_with_its_file(tmp_path: Path, text: str, word: str):
    folder = make_task(tmp_path / "count", config='[metadata.harness]\nskills = ["a"]')
    path = skill_file(folder, "a", text)
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    assert str(path) in str(raised.value)
    assert word in str(raised.value)


def test_a_skill_of_somebody_else_that_cannot_be_read_stops_no_task(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    skill_file(folder, "a", "# Awk\nUse it.\n")
    skill_file(folder, "b", "---\nname: sums\ndescription: adding\n---\nB")
    task = load_task(folder)
    assert [skill.name for skill in task.skills] == ["sums"]
    assert task.environment is not None
    assert task.environment.ignored == (
        "environment/skills/a/SKILL.md: must begin with a front matter between two '---' lines; the"
        " skill is left out",
    )


def test_a_skill_may_narrow_the_tools(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    head = "name: a\ndescription: b\nallowed_tools: [shell, read_file]\ndisallowed_tools: [shell]"
    skill_file(folder, "a", f"---\n{head}\n---\nUse awk.\n")
    skill_file(folder, "b", "---\nname: b\ndescription: b\n---\nUse cut.\n")
    first, second = load_task(folder).skills
    assert first.allowed_tools == ("shell", "read_file")
    assert first.disallowed_tools == ("shell",)
    assert (second.allowed_tools, second.disallowed_tools) == (None, ())


@pytest.mark.parametrize("key", ["allowed_tools", "disallowed_tools"])
def test_a_skill_cannot_name_a_tool_that_the_task_does_not_have(tmp_path: Path, key: str):
    folder = make_task(tmp_path / "count")
    path = skill_file(folder, "a", f"---\nname: a\ndescription: b\n{key}: [shel]\n---\nUse awk.")
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    for word in (str(path), key, "'shel'", "shell"):
        assert word in str(raised.value)


def test_keys_of_a_skill_that_are_for_other_readers_are_ignored(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    head = "name: a\ndescription: b\nlicense: MIT\nallowed-tools: [Bash]\nmetadata: {v: 1}"
    skill_file(folder, "a", f"---\n{head}\n---\nUse awk.\n")
    (skill,) = load_task(folder).skills
    assert (skill.name, skill.description, skill.instructions) == ("a", "b", "Use awk.")
    assert skill.allowed_tools is None


def test_a_task_has_the_name_of_its_folder_even_where_that_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = make_task(tmp_path / "count")
    (tmp_path / "again").symlink_to("count")
    assert load_task(tmp_path / "again").name == "again"
    monkeypatch.chdir(folder)
    assert load_task(Path()).name == "count"


@pytest.mark.parametrize("name", ["two words", "-x", "a:b", "ü", "line\n"])
def test_a_folder_whose_name_cannot_be_a_tasks_is_refused(tmp_path: Path, name: str):
    folder = make_task(tmp_path / name)
    with pytest.raises(BadInputError, match="rename the folder") as raised:
        load_task(folder)
    assert repr(name) in str(raised.value)


@pytest.mark.parametrize(
    "file",
    [
        "task.toml",
        "instruction.md",
        "tests/test.sh",
        "tests/expected.txt",
        "environment/workspace/data.txt",
        "environment/workspace/deep/more.txt",
        "checks.py",
    ],
)
def test_the_digest_follows_every_file_a_trial_depends_on(tmp_path: Path, file: str):
    folder = make_task(tmp_path / "count")
    before = load_task(folder)
    old = (folder / file).read_text() if (folder / file).exists() else ""
    write(folder / file, old + "\n# changed")
    after = load_task(folder)
    assert after.digest != before.digest
    assert (after.tests_digest != before.tests_digest) == file.startswith("tests/")


def test_the_digest_ignores_times_solution_and_place(tmp_path: Path):
    folder = make_task(tmp_path / "here" / "count")
    before = load_task(folder)
    copy = shutil.copytree(folder, tmp_path / "there" / "count")
    os.utime(copy / "instruction.md", (0, 0))
    write(copy / "solution" / "solve.sh", "echo other\n")
    write(copy / "tests" / "__pycache__" / "x.pyc", "compiled")
    assert load_task(copy).digest == before.digest


def test_a_file_is_not_mistaken_for_the_end_of_the_one_before(tmp_path: Path):
    two = make_task(tmp_path / "two" / "count")
    write(two / "tests" / "x", "a")
    write(two / "tests" / "y", "b")
    one = make_task(tmp_path / "one" / "count")
    write(one / "tests" / "x", "atests/yb")
    assert load_task(one).tests_digest != load_task(two).tests_digest


def test_an_output_is_checked_when_the_task_is_loaded(tmp_path: Path):
    config = OUTPUT + 'validators = ["checks:nothing"]'
    folder = make_task(tmp_path / "count", config=config)
    with pytest.raises(ConfigurationError, match="checks"):
        load_task(folder)


def test_a_task_may_say_that_nothing_judges_it(tmp_path: Path):
    folder = make_task(tmp_path / "count", config="[metadata.harness]\nverifier = false\n")
    shutil.rmtree(folder / "tests")
    [step] = load_task(folder).steps
    assert (step.verifier.tests, step.verifier.environment) == ((), None)
    write(folder / "task.toml", "")
    with pytest.raises(BadInputError, match=r"tests/test\.sh: no such file"):
        load_task(folder)


@pytest.mark.parametrize(
    "part",
    [
        *("task.toml", "instruction.md", "tests", "tests/test.sh", "solution", "environment"),
        *("environment/workspace", "environment/skills/a/SKILL.md", "steps/one/instruction.md"),
    ],
)
def test_links_out_of_a_task_are_refused(tmp_path: Path, part: str):
    folder = make_task(tmp_path / "count")
    write(folder / "environment" / "skills" / "a" / "SKILL.md", "---\nname: a\ndescription: b\n---")
    write(folder / "steps" / "one" / "instruction.md", "x")
    (folder / part).rename(tmp_path / "elsewhere")
    (folder / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    assert str(raised.value).startswith(f"{folder / part}: a link out of the task's folder")


def test_links_within_a_task_are_fine(tmp_path: Path):
    folder = make_task(tmp_path / "count")
    (folder / "instruction.md").rename(folder / "text.md")
    (folder / "instruction.md").symlink_to("text.md")
    assert load_task(folder).instruction == "Count the lines."
