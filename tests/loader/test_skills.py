"""Skills, as they are written for other agents, and where a machine has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import BadInputError
from harness.loader.suite import load_suite
from harness.loader.task.skills import (
    load_skill,
    offered_tools,
    skill_files,
    trial_skills,
    without_skills,
)
from harness.schema.environment import CopyFiles, Environment, FileCommand
from harness.schema.suite import Suite
from tests.loader.suite_folders import SUITE, make_task, write

TEXT = "---\nname: mesh\ndescription: Reads meshes.\n---\n\nUse the tool.\n"


def task_with_skills(folder: Path, dockerfile: str | None = None, config: str = "") -> Path:
    make_task(folder, config=config)
    write(folder / "environment" / "skills" / "mesh" / "SKILL.md", TEXT)
    write(folder / "environment" / "skills" / "mesh" / "scripts" / "mesh.py", "print(1)\n")
    if dockerfile is not None:
        write(folder / "environment" / "Dockerfile", dockerfile)
    return folder


def test_a_description_over_several_lines_is_told_in_one(tmp_path: Path) -> None:
    text = TEXT.replace("Reads meshes.", "|\n  Reads\n  meshes.")
    assert load_skill(write(tmp_path / "SKILL.md", text)).description == "Reads meshes."


def loaded(folder: Path, *settings: str) -> Suite:
    """The suite of a folder of tasks with one variant, with these lines in its table."""
    text = "\n".join([SUITE.replace('"baseline"', '"only"'), *settings])
    write(folder / "suite.toml", text)
    return load_suite(folder)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("---\nname: a\ndescription: Parsing: and export\n---\nx", "Parsing: and export"),
        ("\ufeff---\r\nname: a\r\ndescription: B\r\n---\r\nx\r\n", "B"),
        ("---\nname: a\ndescription: >\n  long\n  text\nlicense: MIT\n---\nx", "long text"),
        ("---\nname: a\ndescription: B\nallowed-tools: Bash(*)\nmetadata: {v: 1}\n--- \nx", "B"),
    ],
)
def test_a_skill_is_read_as_other_agents_read_it(
    tmp_path: Path, text: str, description: str
) -> None:
    path = tmp_path / "SKILL.md"
    path.write_bytes(text.encode())
    skill = load_skill(path)
    assert (skill.name, skill.description, skill.instructions) == ("a", description, "x")
    assert skill.allowed_tools is None


def test_what_lies_beside_a_skill_is_known(tmp_path: Path) -> None:
    write(tmp_path / "SKILL.md", TEXT)
    for name in ("scripts/run.py", "references/deep/a.md", ".git/x", "scripts/__pycache__/y.pyc"):
        write(tmp_path / name, "x")
    assert load_skill(tmp_path / "SKILL.md").files == ("references/deep/a.md", "scripts/run.py")


def test_skills_are_found_in_folders_of_folders_but_not_within_one_another(tmp_path: Path) -> None:
    for place in ("b", "group/a", "b/examples/inner"):
        write(tmp_path / place / "SKILL.md", TEXT)
    write(tmp_path / "SKILL.md", "no skill of its own")
    assert list(skill_files(tmp_path)) == ["b", "group/a"]


@pytest.mark.parametrize(
    ("dockerfile", "root"),
    [
        (
            "FROM python:3.12\nCOPY skills /root/.claude/skills\nCOPY skills /root/.codex/skills\n",
            "/root/.claude/skills",
        ),
        ("FROM python:3.12\nWORKDIR /app\nCOPY skills/ ./advice/\n", "/app/advice"),
        ("FROM python:3.12\nCOPY . /root/\n", "/root/skills"),
        ("FROM python:3.12\n", "/skills"),
        (None, "/skills"),
    ],
)
def test_the_agent_is_told_where_the_machine_has_the_skills(
    tmp_path: Path, dockerfile: str | None, root: str
) -> None:
    task_with_skills(tmp_path / "suite" / "count", dockerfile)
    suite = loaded(tmp_path / "suite", 'skills = "curated"')
    given = trial_skills(suite.variants[0], suite.tasks[0])
    assert (given.root, [skill.place for skill in given.skills]) == (root, ["mesh"])
    laid = given.environment.skills is not None
    assert laid == (root == "/skills"), "it is laid there where no COPY puts it"


def test_a_variant_without_skills_gets_a_machine_without_them(tmp_path: Path) -> None:
    task_with_skills(
        tmp_path / "suite" / "count",
        "FROM python:3.12\nCOPY notes.txt skills /root/all/\nCOPY . /data/\n"
        "RUN chmod -R a+x /root/all && mkdir /kept\n",
    )
    write(tmp_path / "suite" / "count" / "environment" / "notes.txt", "x")
    suite = loaded(tmp_path / "suite")
    given = trial_skills(suite.variants[0], suite.tasks[0])
    assert (given.skills, given.on_demand) == ((), False)
    copies = [step for step in given.environment.build if isinstance(step, CopyFiles)]
    assert [(step.sources, step.exclude) for step in copies] == [
        (("notes.txt",), ()),
        ((".",), ("skills",)),
    ]
    commands = [step for step in given.environment.build if isinstance(step, FileCommand)]
    assert commands[0].command == "mkdir -p /root/all /data/skills"
    assert ("/kept" in commands[1].command, commands[1].needed) == (True, False)
    assert commands[-1].command == "rmdir --ignore-fail-on-non-empty /root/all /data/skills"
    assert given.environment.engine.left_empty == ("skills",)


def test_a_machine_without_skills_stays_as_it_is(tmp_path: Path) -> None:
    build = (CopyFiles(sources=(".",), target="/app/"), FileCommand(command="ls /app", cwd="/"))
    environment = Environment(context=tmp_path, build=build)
    assert without_skills(environment) == environment


def test_a_chosen_folder_takes_the_place_of_the_tasks_own(tmp_path: Path) -> None:
    task_with_skills(
        tmp_path / "suite" / "count", "FROM python:3.12\nCOPY skills /root/.claude/skills\n"
    )
    write(tmp_path / "ours" / "deep" / "sums" / "SKILL.md", TEXT.replace("mesh", "sums"))
    suite = loaded(tmp_path / "suite", 'skills = "../ours"', 'disclosure = "on_demand"')
    given = trial_skills(suite.variants[0], suite.tasks[0])
    assert [(skill.name, skill.place) for skill in given.skills] == [("sums", "deep/sums")]
    assert given.on_demand
    assert given.environment.build == ()
    assert given.environment.skills == tmp_path / "suite" / ".." / "ours"
    assert given.environment.skills_dir == "/root/.claude/skills"
    assert str(tmp_path) not in suite.variants[0].model_dump_json(), "a run's log names no place"


def test_a_skill_that_is_named_itself_leads_to_the_folder_that_holds_it(tmp_path: Path) -> None:
    make_task(tmp_path / "suite" / "count")
    write(tmp_path / "ours" / "mesh" / "SKILL.md", TEXT)
    with pytest.raises(BadInputError, match=r"give the folder that holds it: .*/ours$"):
        loaded(tmp_path / "suite", 'skills = "../ours/mesh"')


def test_a_folder_of_which_two_skills_have_one_name_is_refused(tmp_path: Path) -> None:
    make_task(tmp_path / "suite" / "count")
    for place in ("a", "b"):
        write(tmp_path / "ours" / place / "SKILL.md", TEXT)
    with pytest.raises(
        BadInputError,
        match=r"suite\.toml: variant 'only': skills: two are called 'mesh': "
        r".*ours/a/SKILL\.md and .*ours/b/SKILL\.md; rename one",
    ):
        loaded(tmp_path / "suite", 'skills = "../ours"')


@pytest.mark.parametrize(
    ("preset", "config", "tools", "on_demand"),
    [
        ("terminus2", "", ("keystrokes",), False),
        ("terminus2-skills", "", ("keystrokes",), True),
        ("terminus2", '[metadata.harness]\ntools = ["shell"]\n', ("shell",), False),
        ("onering", "", ("shell", "read_file", "write_file", "list_dir"), False),
    ],
)
def test_a_preset_brings_its_tools_where_a_task_names_none(
    tmp_path: Path, preset: str, config: str, tools: tuple[str, ...], on_demand: bool
) -> None:
    task_with_skills(tmp_path / "suite" / "count", config=config)
    suite = loaded(tmp_path / "suite", f'preset = "{preset}"', 'skills = "curated"')
    assert offered_tools(suite.variants[0], suite.tasks[0]) == tools
    assert trial_skills(suite.variants[0], suite.tasks[0]).on_demand == on_demand
