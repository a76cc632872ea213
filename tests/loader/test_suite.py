from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import BadInputError, ConfigurationError
from harness.loader.suite import applies, load_suite, resolve_model
from harness.runner.plan import plan
from harness.schema.suite import Suite
from tests.loader.suite_folders import OUTPUT, SUITE, make_suite, make_task

VARIANTS = (
    SUITE
    + """
[[variants]]
name = "short"
loop.max_iterations = 3
loop.confirm = {enabled = true}
model.temperature = 0.5
skills = "curated"
tasks = ["count", "s*"]
"""
)


def loaded(folder: Path, *overrides: str, suite: str = VARIANTS) -> Suite:
    make_suite(folder, suite=suite, tasks=("count", "sort", "other"))
    return load_suite(folder, overrides=overrides)


def test_a_suite_holds_its_tasks_by_name_and_its_variants_in_order(tmp_path: Path):
    suite = loaded(tmp_path)
    assert (suite.name, suite.version, suite.repeats) == ("small", 1, 2)
    assert suite.system == "You work in /workspace."
    assert [task.name for task in suite.tasks] == ["count", "other", "sort"]
    assert [variant.name for variant in suite.variants] == ["baseline", "short"]


def test_a_variant_changes_the_defaults_it_names_and_keeps_the_others(tmp_path: Path):
    baseline, short = loaded(tmp_path).variants
    assert (baseline.loop.max_iterations, baseline.loop.confirm.enabled) == (8, False)
    assert (short.loop.max_iterations, short.loop.confirm.enabled) == (3, True)
    assert (baseline.model.temperature, short.model.temperature) == (0, 0.5)
    assert short.model.name == "tiny"
    assert (baseline.skills, short.skills) == ("none", "curated")


def test_a_variant_applies_to_the_tasks_its_globs_name(tmp_path: Path):
    suite = loaded(tmp_path)
    baseline, short = suite.variants
    assert [applies(baseline, task) for task in suite.tasks] == [True, True, True]
    assert [applies(short, task) for task in suite.tasks] == [True, False, True]


def test_folders_that_are_no_tasks_are_left_alone(tmp_path: Path):
    make_suite(tmp_path)
    for name in (".git", "__pycache__", "docs"):
        (tmp_path / name).mkdir()
    assert [task.name for task in load_suite(tmp_path).tasks] == ["count"]


def test_a_folder_with_an_instruction_but_no_task_toml_is_not_skipped_silently(tmp_path: Path):
    make_suite(tmp_path, tasks=("count", "sort"))
    (tmp_path / "sort" / "task.toml").unlink()
    with pytest.raises(BadInputError, match=r"sort/task\.toml: no such file"):
        load_suite(tmp_path)


def test_overrides_win_over_defaults_and_over_every_variant(tmp_path: Path):
    suite = loaded(tmp_path, "loop.max_iterations=2", "model.name=qwen2.5-coder-0.5b", "repeats=1")
    assert suite.repeats == 1
    assert [variant.loop.max_iterations for variant in suite.variants] == [2, 2]
    assert {variant.model.name for variant in suite.variants} == {"qwen2.5-coder-0.5b"}


def test_overrides_reach_into_tables_and_keep_what_they_do_not_name(tmp_path: Path):
    suite = loaded(tmp_path, "loop.confirm.max_prompts=1", "loop.budget.max_tokens = 500")
    _, short = suite.variants
    assert short.loop.confirm.enabled
    assert short.loop.confirm.max_prompts == 1
    assert short.loop.budget.max_tokens == 500


def test_of_two_overrides_of_a_key_the_last_counts(tmp_path: Path):
    assert loaded(tmp_path, "repeats=4", "repeats=5").repeats == 5


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("loop.max_iteration=2", ["loop.max_iteration", "'max_iterations'"]),
        ("loop.confirm.enable=true", ["loop.confirm.enable", "'enabled'"]),
        ("loop.max_iterations=two", ["loop.max_iterations = 'two'", "integer"]),
        ("loop.max_iterations=2.5", ["loop.max_iterations = 2.5", "integer"]),
        ("loop.max_iterations=-1", ["loop.max_iterations = -1", "greater"]),
        ("loop.max_iterations=", ["loop.max_iterations = ''", "integer"]),
        ("loop.reflection=yes", ["loop.reflection = 'yes'", "boolean"]),
        ("loop.tool_error=stop", ["loop.tool_error = 'stop'", "fail"]),
        ("loop.tool_timeout_s=inf", ["loop.tool_timeout_s = inf", "finite"]),
        ("loop.budget.max_duration_s=nan", ["loop.budget.max_duration_s = nan", "finite"]),
        ("loop.raise_on_failure=true", ["loop.raise_on_failure = true", "leave it out"]),
        ("model.temperature=inf", ["model.temperature = inf", "finite"]),
        ("model.provider=opnai", ["model.provider = 'opnai'", "did you mean 'openai'?"]),
        ("model.temprature=1", ["model.temprature", "did you mean 'temperature'?"]),
        ("model.name=7", ["model.name = 7", "string"]),
        ("repeats=0", ["repeats = 0"]),
        ("repeat=1", ["'repeat'", "did you mean 'repeats'?"]),
        ("system=hello", ["'system' cannot be set", "disclosure, loop, model, repeats, skills"]),
        ("repeats", ["key=value"]),
        ("loop=1", ["loop.max_iterations=5"]),
        ("loop..x=1", ["key=value"]),
    ],
)
def test_a_wrong_override_is_named_with_what_would_be_valid(
    tmp_path: Path, override: str, words: list[str]
):
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, override)
    assert str(raised.value).startswith(f"--set {override}: ")
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("version = 1", "version = 1\nrepeat = 3"), ["repeat: unknown key", "'repeats'"]),
        (("version = 1", "version = '1'"), ["version = '1'", "integer"]),
        (("version = 1", ""), ["version: missing"]),
        (
            ("http://", "htp://"),
            ["suite.toml: variant", "model.base_url = 'htp://", "': must begin with http"],
        ),
        (('"openai"', '"opnai"'), ["model.provider = 'opnai'", "did you mean 'openai'?"]),
        (("temperature = 0", "temprature = 0"), ["model.temprature: unknown key"]),
        (("max_iterations = 8", "max_iter = 8"), ["loop.max_iter: unknown key"]),
        (("max_iterations = 8", "text_protocol = 'yaml'"), ["loop.text_protocol = 'yaml'", "xml"]),
        (("max_iterations = 8", "raise_on_failure = true"), ["loop.raise_on_failure = true"]),
        (
            ("loop.max_iterations = 3", "loop.raise_on_failure = true"),
            ["variants[1].loop.raise_on_failure = true", "leave it out"],
        ),
        (("\ntemperature = 0", "\ntemperature = nan"), ["model.temperature = nan", "finite"]),
        (("model.temperature = 0.5", "model.temperature = inf"), ["'short'", "temperature = inf"]),
        (("\ntemperature = 0", "\nprice = {input = inf, output = 0}"), ["model.price.input = inf"]),
        (("loop.max_iterations = 3", "loop.reflect = true"), ["variants[1].loop.reflect: unknown"]),
        (
            ("model.temperature = 0.5", "model.temp = 1"),
            ["variant 'short': model", "temp: unknown"],
        ),
        (('"curated"', '"all"'), ["variant 'short': skills = 'all': no SKILL.md", "curated"]),
        (('["count", "s*"]', '["cont"]'), ["'short'", "'cont'", "did you mean 'count'?"]),
        (('name = "short"', 'name = "baseline"'), ["two variants", "'baseline'"]),
        (('name = "short"', 'name = "a/b"'), ["variants[1].name = 'a/b'"]),
        (("[loop]", "[loop"), ["not valid TOML", "line"]),
        (
            ("max_iterations = 8", "stop_when = ['tests_pass']"),
            ["'baseline': loop.stop_when[0] = 'tests_pass'", "text_contains or tokens_above"],
        ),
        (("max_iterations = 8", "history = 'continue'"), ["loop.history = 'continue'", "one run"]),
        (
            ("loop.max_iterations = 3", "loop.on_limit = 'callback'"),
            ["'short': loop.on_limit = 'callback'", "no callback"],
        ),
        (
            ('"openai"', '"anthropic"\napi = "responses"'),
            ["'baseline': model.api = 'responses'", "'anthropic'", "only to 'openai'"],
        ),
        (
            ("model.temperature = 0.5", 'model = {provider = "google", system_role = "developer"}'),
            ["'short': model.system_role = 'developer'", "'google'"],
        ),
    ],
)
def test_a_mistake_in_suite_toml_is_named_with_file_and_key(
    tmp_path: Path, change: tuple[str, str], words: list[str]
):
    assert change[0] in VARIANTS
    with pytest.raises(BadInputError) as raised:
        loaded(tmp_path, suite=VARIANTS.replace(*change))
    message = str(raised.value)
    assert message.startswith(str(tmp_path / "suite.toml"))
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_missing_suite_is_named(tmp_path: Path):
    with pytest.raises(BadInputError, match="nowhere: no such suite folder"):
        load_suite(tmp_path / "nowhere")
    with pytest.raises(BadInputError, match=r"suite\.toml: no such file"):
        load_suite(tmp_path)


def test_a_suite_without_tasks_is_refused(tmp_path: Path):
    make_suite(tmp_path, tasks=())
    with pytest.raises(BadInputError, match="no task in it"):
        load_suite(tmp_path)


def test_a_task_may_ask_for_another_model_than_the_variant(tmp_path: Path):
    make_suite(tmp_path)
    config = '[metadata.harness.model]\nprovider = "anthropic"\nname = "own"'
    make_task(tmp_path / "count", config=config)
    suite = load_suite(tmp_path)
    model = resolve_model(suite.variants[0], suite.tasks[0])
    assert (model.provider, model.name, model.temperature) == ("anthropic", "own", 0)
    changed = load_suite(tmp_path, overrides=["model.name=other"])
    model = resolve_model(changed.variants[0], changed.tasks[0])
    assert (model.provider, model.name) == ("anthropic", "other")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('provider = "antropic"', ["provider = 'antropic'", "did you mean 'anthropic'?"]),
        ('nam = "x"', ["nam: unknown key", "did you mean 'name'?"]),
    ],
)
def test_a_mistake_in_a_tasks_model_is_found_on_loading(
    tmp_path: Path, line: str, words: list[str]
):
    make_suite(tmp_path)
    make_task(tmp_path / "count", config=f"[metadata.harness.model]\n{line}")
    with pytest.raises(ConfigurationError) as raised:
        load_suite(tmp_path)
    for word in ("count/task.toml: metadata.harness.model", *words):
        assert word in str(raised.value)


REFLECTION = SUITE + '\n[[variants]]\nname = "reflection"\nloop.reflection = true\n'


@pytest.mark.parametrize(
    ("config", "lacks"), [("", "no output"), (OUTPUT, "no reflection_handler on its output")]
)
def test_reflection_on_a_task_that_cannot_show_a_draft_is_refused(
    tmp_path: Path, config: str, lacks: str
):
    make_suite(tmp_path, suite=REFLECTION)
    make_task(tmp_path / "count", config=config)
    with pytest.raises(ConfigurationError, match=f"'reflection'.*'count' has {lacks}"):
        load_suite(tmp_path)


def test_reflection_that_leaves_such_tasks_out_is_fine(tmp_path: Path):
    make_suite(tmp_path, suite=REFLECTION + 'tasks = ["draft*"]\n')
    handler = 'reflection_handler = {returns = "{result}"}'
    make_task(tmp_path / "drafted", config=OUTPUT + handler)
    assert [variant.name for variant in load_suite(tmp_path).variants] == ["baseline", "reflection"]


def test_reflection_switched_on_by_an_override_is_checked_too(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"loop\.reflection"):
        loaded(tmp_path, "loop.reflection=true")


def test_an_output_called_submit_is_refused_where_reflection_adds_that_tool(tmp_path: Path):
    make_suite(tmp_path, suite=REFLECTION)
    config = OUTPUT + 'name = "submit"\nreflection_handler = {returns = "{result}"}'
    make_task(tmp_path / "count", config=config)
    with pytest.raises(ConfigurationError) as raised:
        load_suite(tmp_path)
    for word in ("count/task.toml: metadata.harness.output.name = 'submit'", "'reflection'"):
        assert word in str(raised.value)
    make_suite(tmp_path, suite=SUITE, tasks=())
    assert len(load_suite(tmp_path).tasks) == 1


def test_a_linked_task_is_a_task_of_its_own(tmp_path: Path):
    make_suite(tmp_path)
    (tmp_path / "again").symlink_to("count")
    assert [task.name for task in load_suite(tmp_path).tasks] == ["again", "count"]


def test_a_preset_that_would_ask_a_callback_can_be_used(tmp_path: Path):
    make_suite(tmp_path)
    suite = load_suite(tmp_path, preset="maestro")
    assert suite.variants[0].loop.on_limit == "callback"
    make_suite(tmp_path, suite=SUITE.replace("max_iterations = 8", 'on_limit = "callback"'))
    assert load_suite(tmp_path, preset="onering").variants[0].loop.on_limit == "wrap_up"


def test_a_task_has_its_own_prompt_and_loop_and_an_override_wins(tmp_path: Path):
    make_suite(tmp_path, tasks=("count", "other"))
    config = '[metadata.harness]\nsystem = " Mine. "\nloop.max_iterations = 3\n'
    make_task(tmp_path / "count", config=config)
    for overrides, limits in ((), (3, 8)), (["loop.max_iterations=5"], (5, 5)):
        cells = plan(load_suite(tmp_path, overrides=overrides), repeats=1)
        specs = [spec for cell in cells for spec in cell.specs]
        assert [spec.system for spec in specs] == ["Mine.", "You work in /workspace."]
        assert tuple(spec.variant.loop.max_iterations for spec in specs) == limits


def test_reflection_is_checked_as_the_task_has_it(tmp_path: Path):
    suite = SUITE.replace("max_iterations = 8", "reflection = true")
    make_suite(tmp_path, suite=suite)
    make_task(tmp_path / "count", config="[metadata.harness]\nloop.reflection = false\n")
    assert load_suite(tmp_path).tasks
    make_suite(tmp_path)
    make_task(tmp_path / "count", config="[metadata.harness]\nloop.reflection = true\n")
    with pytest.raises(BadInputError, match="task 'count' has no output"):
        load_suite(tmp_path)


def test_a_host_alone_is_an_address_for_ollama(tmp_path: Path):
    make_suite(tmp_path, suite=SUITE.replace('"openai"', '"ollama"').replace("http://", ""))
    assert load_suite(tmp_path).variants[0].model.base_url


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("loop.max_iteration = 3", "max_iteration"),
        ("loop.raise_on_failure = true", "raise_on_failure = true: a trial must end"),
        ('loop.history = "continue"', "history = 'continue'"),
        ('loop.stop_when = ["mine"]', "stop_when[0] = 'mine'"),
        ("loop.hard_limit = 2", "soft_limit 4 would never warn"),
    ],
)
def test_a_tasks_loop_is_checked_with_file_and_key(line: str, said: str, tmp_path: Path):
    make_suite(tmp_path, suite=SUITE.replace("max_iterations = 8", "soft_limit = 4"))
    make_task(tmp_path / "count", config=f"[metadata.harness]\n{line}")
    with pytest.raises(BadInputError) as raised:
        load_suite(tmp_path)
    for word in ("count/task.toml: metadata.harness.loop", said):
        assert word in str(raised.value)
