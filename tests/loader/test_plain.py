"""Tasks without a suite.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import BadInputError
from harness.loader.suite import load_suite
from tests.loader.suite_folders import SUITE, make_suite, make_task, write
from tests.loader.test_harbor_task import harbor_task

MODEL = ("model.provider=openai", "model.name=tiny")


def tasks(folder: Path) -> Path:
    harbor_task(folder / "b")
    make_task(folder / "a")
    write(folder / "README.md", "")
    (folder / ".git").mkdir()
    return folder


def test_a_folder_of_tasks_is_a_suite(tmp_path: Path):
    folder = tasks(tmp_path / "bench")
    suite = load_suite(folder, overrides=[*MODEL, "loop.max_iterations=3", "repeats=2"])
    assert (suite.name, suite.version, suite.repeats) == ("bench", 1, 2)
    assert (suite.folder, suite.file) == (folder, folder)
    assert [task.name for task in suite.tasks] == ["a", "b"]
    (variant,) = suite.variants
    assert (variant.name, variant.skills, variant.tasks) == ("default", "curated", ("*",))
    assert (variant.model.provider, variant.model.name) == ("openai", "tiny")
    assert variant.loop.max_iterations == 3
    assert suite.system


def test_skills_are_set_from_the_command_line_for_every_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tasks(tmp_path / "bench")
    monkeypatch.chdir(tmp_path)
    write(Path("ours/tidy/SKILL.md"), "---\nname: tidy\ndescription: Keep order.\n---\nDo.\n")
    (none,) = load_suite(folder, overrides=[*MODEL, "skills=none"]).variants
    assert (none.skills, none.chosen, none.disclosure) == ("none", None, None)
    settings = [*MODEL, "skills=ours", "disclosure=on_demand"]
    (chosen,) = load_suite(folder, overrides=settings).variants
    assert chosen.chosen is not None
    assert [skill.name for skill in chosen.chosen.skills] == ["tidy"]
    assert chosen.disclosure == "on_demand"
    suite = load_suite(make_suite(tmp_path / "small", suite=SUITE), overrides=["skills=curated"])
    assert {variant.skills for variant in suite.variants} == {"curated"}


def test_a_preset_that_has_its_own_words_is_given_none_of_ours(tmp_path: Path):
    folder = tasks(tmp_path / "bench")
    assert load_suite(folder, overrides=MODEL, preset="terminus2").system == ""
    assert load_suite(folder, overrides=MODEL, preset="maestro").system


def test_one_task_is_a_suite_of_its_parents_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tasks(tmp_path / "bench")
    suite = load_suite(folder / "b", overrides=MODEL)
    assert (suite.name, [task.name for task in suite.tasks]) == ("bench", ["b"])
    monkeypatch.chdir(folder / "b")
    assert load_suite(Path(), overrides=MODEL).name == "bench"


def test_without_a_model_the_error_says_how_to_name_one(tmp_path: Path):
    folder = tasks(tmp_path / "bench")
    with pytest.raises(BadInputError) as raised:
        load_suite(folder)
    assert str(raised.value) == (
        f"{folder}: has no suite.toml that names a model; name it with"
        " --set model.provider=PROVIDER --set model.name=NAME"
    )


def test_what_needs_no_model_gets_the_tasks_and_the_variants_name(tmp_path: Path):
    folder = tasks(tmp_path / "bench")
    write(folder / "a" / "task.toml", "[metadata.harness]\nmodel = {temperature = 1}")
    suite = load_suite(folder, needs_model=False, overrides=["repeats=2"])
    assert [task.name for task in suite.tasks] == ["a", "b"]
    assert [variant.name for variant in suite.variants] == ["default"]


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["model.provider=openai"], "--set model: name: missing"),
        (["model.name=x"], "--set model: provider: missing"),
        ([*MODEL, "model.temprature=1"], "did you mean 'temperature'?"),
        ([*MODEL, "loop.max_iteration=1"], "did you mean 'max_iterations'?"),
        (["model.provider=scripted", "model.name=x"], "answers scenarios only"),
        (["model"], "key=value"),
        ([*MODEL, "disclosure=some"], "--set disclosure=some: disclosure = 'some'"),
        ([*MODEL, "skills=3"], "--set skills=3: skills = 3"),
        ([*MODEL, "skills=nowhere"], "--set skills=nowhere: skills = 'nowhere': no SKILL.md"),
    ],
)
def test_a_wrong_model_is_named(tmp_path: Path, overrides: list[str], told: str):
    with pytest.raises(BadInputError) as raised:
        load_suite(tasks(tmp_path / "bench"), overrides=overrides)
    assert told in str(raised.value)


def test_a_folder_whose_name_cannot_be_a_suites_is_refused(tmp_path: Path):
    with pytest.raises(BadInputError, match="a suite cannot be called 'my bench'; rename"):
        load_suite(tasks(tmp_path / "my bench"), overrides=MODEL)


def test_yaml_beside_tasks_makes_no_scenarios_of_them(tmp_path: Path):
    folder = tasks(tmp_path / "bench")
    write(folder / "registry.yaml", "a: b\n")
    assert len(load_suite(folder, overrides=MODEL).tasks) == 2


def test_a_suite_toml_keeps_its_say(tmp_path: Path):
    folder = make_suite(tmp_path / "bench", suite=SUITE)
    assert load_suite(folder).name == "small"


def test_a_folder_with_nothing_in_it_is_told_what_a_suite_is(tmp_path: Path):
    with pytest.raises(BadInputError, match=r"suite\.toml: no such file; .* only folders of tasks"):
        load_suite(tmp_path)
