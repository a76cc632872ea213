"""Agents from TOML files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from harness.agents.definition import load_agent, load_agents
from harness.errors import BadInputError
from harness.providers.scripted import Scripted, turn
from tests.agents.support import COUNTER, write_agents
from tests.loop.support import call


def test_a_folder_of_files_is_loaded_by_name(tmp_path: Path) -> None:
    agents = load_agents(write_agents(tmp_path))
    assert list(agents) == ["counter", "talker"]
    assert agents["counter"].file.description == "Counts boats."
    assert list(load_agents(str(tmp_path))) == list(agents)
    assert load_agent(str(tmp_path / "counter.toml")).path == tmp_path / "counter.toml"


def test_an_agent_is_opened_with_everything_that_its_file_says(tmp_path: Path) -> None:
    agent = load_agents(write_agents(tmp_path))["counter"]
    model = Scripted(
        [
            turn(calls=[call("1", "query", harbour="north"), call("2", "list_dir", path=".")]),
            turn(calls=[call("3", "output", boats=0)]),
            turn(calls=[call("4", "output", boats=4)]),
        ]
    )
    with agent.opened(model) as opened:
        trajectory = opened.run("Go.")
    assert trajectory.output == {"boats": 4}
    assert trajectory.validation_failures == ("there are always boats",)
    counted, listed = trajectory.messages[2].tool_results
    assert counted.content == "4"
    assert "log.txt" in listed.content
    config = opened.loop.config
    assert (config.max_iterations, config.text_only, config.max_attempts) == (4, "error", 3)
    assert (opened.loop.temperature, opened.loop.model) == (0.5, "m-1")
    assert "Count twice." in str(model.requests[0].system)


def test_each_call_works_in_a_workspace_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    path = write_agents(tmp_path) / "counter.toml"
    path.write_text(COUNTER.replace('"list_dir"', '"write_file", "list_dir"'))
    agent = load_agent(path)
    seen = []
    for _ in range(2):
        write = call("2", "write_file", path="new.txt", content="x")
        look = turn(calls=[call("1", "list_dir", path="."), write])
        with agent.opened(Scripted([look, turn(calls=[call("3", "output", boats=4)])])) as opened:
            seen.append(opened.run("Go.").messages[2].tool_results[0].content)
            assert list((tmp_path / "copies").iterdir())
        assert not list((tmp_path / "copies").iterdir())
    assert seen[0] == seen[1]
    assert [child.name for child in (tmp_path / "harbour").iterdir()] == ["log.txt"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("description", "descripton"), ["descripton: unknown key", "did you mean 'description'?"]),
        (('system = "Count the boats."', ""), ["system: missing"]),
        (('name = "counter"', 'name = "a b"'), ["name = 'a b'"]),
        (('provider = "openai"', 'provider = "opnai"'), ["model.provider = 'opnai'", "openai"]),
        (('"boats:query"', '"query"'), ["tools[0] = 'query': no built-in tool", "module:function"]),
        (('"boats:query"', '"boats:qery"'), ["tools[0]", "did you mean 'query'?"]),
        (('"boats:query"', '"gone:query"'), ["tools[0]", "no module 'gone'"]),
        (('"boats:query"', '"list_dir"'), ["'list_dir' is there twice"]),
        (('workspace = "harbour"', ""), ["tools: 'list_dir' needs a folder", "workspace"]),
        (('workspace = "harbour"', 'workspace = "port"'), ["workspace = 'port': no such folder"]),
        ((', "list_dir"', ""), ["workspace = 'harbour': no tool uses it"]),
        (("max_iterations", "max_iteration"), ["loop.max_iteration: unknown key"]),
        (("max_iterations = 4", "raise_on_failure = true"), ["loop.raise_on_failure"]),
        (("max_iterations = 4", "reflection = true"), ["reflection handler"]),
        (('type = "integer"', 'type = "int"'), ["output.schema: not a JSON Schema"]),
        (("boats:some", "boats:none"), ["output.validators[0] = 'boats:none'"]),
        (('["counting"]', '["sailing"]'), ["active skill 'sailing' is not declared"]),
        (("skills/counting", "skills/sailing"), ["SKILL.md: no such file"]),
        (("required = false", "require = false"), ["inputs.day.require: unknown key"]),
        (('preset = "sigil"', 'preset = "sigi"'), ["preset = 'sigi'", "did you mean 'sigil'?"]),
        (("[model]", "[model"), ["not valid TOML"]),
    ],
)
def test_a_mistake_is_named_with_file_and_key(
    tmp_path: Path, change: tuple[str, str], words: list[str]
) -> None:
    path = write_agents(tmp_path) / "counter.toml"
    assert change[0] in COUNTER
    path.write_text(COUNTER.replace(*change))
    with pytest.raises(BadInputError) as error:
        load_agents(tmp_path)
    for word in [str(tmp_path), *words]:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_two_agents_of_one_name_and_a_folder_without_any_are_refused(tmp_path: Path) -> None:
    (write_agents(tmp_path) / "other.toml").write_text(COUNTER)
    with pytest.raises(BadInputError, match=r"other\.toml: name = 'counter': .*counter\.toml has"):
        load_agents(tmp_path)
    with pytest.raises(BadInputError, match="no agent in it"):
        load_agents(tmp_path / "harbour")
    with pytest.raises(BadInputError, match="no such folder"):
        load_agents(tmp_path / "gone")
