"""Reading a reward from a folder that the agent's own code may have written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.runner.rewards import REWARD_BYTES, combined, read_rewards, shortfall
from harness.runner.stage import Left, Stage
from harness.sandbox.container import FolderContainer
from harness.schema.environment import Verifier, folder_environment
from harness.schema.results import Verdict
from tests.runner.made_tasks import hosting_in, make_step, make_task
from tests.sandbox.here import working_sandbox


@pytest.fixture
def container(tmp_path: Path) -> Iterator[FolderContainer]:
    (tmp_path / "source").mkdir()
    opened = working_sandbox().open(folder_environment(tmp_path / "source"), {})
    assert isinstance(opened, FolderContainer)
    yield opened
    opened.close()


@pytest.fixture
def logs(container: FolderContainer) -> Path:
    """Where a verifier leaves its reward."""
    return container.folder / "logs" / "verifier"


NEITHER = "the verifier wrote neither reward.json nor reward.txt"


@pytest.mark.parametrize(
    ("files", "rewards"),
    [
        ({"reward.txt": "1\n"}, {"reward": 1}),
        ({"reward.txt": " 0.25"}, {"reward": 0.25}),
        ({"reward.json": '{"reward": 1, "style": 0.5}'}, {"reward": 1, "style": 0.5}),
        ({"reward.json": '{"a": 0}', "reward.txt": "1"}, {"a": 0}),
    ],
)
def test_rewards_are_read(
    container: FolderContainer, logs: Path, files: dict[str, str], rewards: dict[str, float]
):
    for name, text in files.items():
        (logs / name).write_text(text)
    assert read_rewards(container, "said") == Verdict(rewards=rewards, log="said")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "{}",
        "null",
        '{"reward": "1"}',
        '{"reward": true}',
        '{"reward": null}',
        '{"reward": NaN}',
        '{"reward": 1e999}',
        '{"reward": 1, "log": {"style": 1}}',
        '{"reward": ' + "1" * 400 + "}",
        '{"reward": ' + "1" * 5000 + "}",
        "[" * REWARD_BYTES,
        '{"a":' * 10_000,
        '{"\\ud800": 1}',
        "\x00",
    ],
)
def test_a_reward_json_without_finite_numbers_is_an_error(
    container: FolderContainer, logs: Path, text: str
):
    (logs / "reward.json").write_text(text)
    (logs / "reward.txt").write_text("1")
    verdict = read_rewards(container, "")
    assert verdict.rewards == {}
    assert str(verdict.error).startswith("reward.json holds no finite number: ")
    assert len(str(verdict.error)) < 500


@pytest.mark.parametrize("content", [b"", b"passed", b"nan", b"inf", b"\xff", b"1" * 5000])
def test_a_reward_txt_that_is_no_finite_number_is_an_error(
    container: FolderContainer, logs: Path, content: bytes
):
    (logs / "reward.txt").write_bytes(content)
    verdict = read_rewards(container, "")
    assert verdict.rewards == {}
    assert str(verdict.error).startswith("reward.txt holds no finite number: ")


@pytest.mark.parametrize(
    ("name", "text"), [("reward.txt", "-1.7e308"), ("reward.json", '{"a": 1, "b": 1.7e308}')]
)
def test_a_reward_beyond_all_use_is_an_error(
    container: FolderContainer, logs: Path, name: str, text: str
):
    (logs / name).write_text(text)
    assert read_rewards(container, "") == Verdict(error=f"{name} holds a number beyond 1e+100")


def test_no_reward_is_an_error(container: FolderContainer, logs: Path):
    assert read_rewards(container, "") == Verdict(error=NEITHER)
    logs.rmdir()
    assert read_rewards(container, "") == Verdict(error=NEITHER)


@pytest.mark.parametrize("size", [REWARD_BYTES + 1, 8 << 40])
@pytest.mark.parametrize("name", ["reward.json", "reward.txt"])
def test_a_file_too_long_is_not_read(container: FolderContainer, logs: Path, name: str, size: int):
    with (logs / name).open("wb") as file:
        file.truncate(size)
    assert read_rewards(container, "").error == f"{name} is longer than 65536 bytes"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(
    container: FolderContainer, logs: Path, make
):
    make(logs / "reward.json")
    (logs / "reward.txt").write_text("1")
    assert "reward.json cannot be read: " in str(read_rewards(container, "").error)


def test_links_lead_to_nothing_of_the_host(container: FolderContainer, logs: Path, tmp_path: Path):
    (tmp_path / "reward.txt").write_text("1")
    (logs / "reward.txt").symlink_to(tmp_path / "reward.txt")
    assert read_rewards(container, "") == Verdict(error=NEITHER)
    (logs / "reward.txt").unlink()
    logs.rmdir()
    logs.symlink_to(tmp_path)
    assert read_rewards(container, "") == Verdict(error=NEITHER)


def verdict_of(script: str, folder: Path, *, timeout_s: float = 60) -> Verdict:
    """What comes of a verifier, run for real."""
    task = make_task(folder, make_step(folder, test=script, verifier={"timeout_s": timeout_s}))
    hosting = hosting_in(folder)
    assert task.environment is not None
    with closing(hosting.machine(task.environment)) as machine:
        left = Left(answer="It is 42.", output={"n": 42}, output_seen=True)
        verdict = Stage(task, machine, hosting).verify(task.steps[0], left)
    assert verdict is not None
    return verdict


def test_the_verifier_sees_answer_and_output_and_its_exit_code_does_not_count(tmp_path: Path):
    script = """
cat /logs/agent/answer.txt /logs/agent/output.json
echo 0.5 > /logs/verifier/reward.txt
exit 3
"""
    assert verdict_of(script, tmp_path) == Verdict(
        rewards={"reward": 0.5}, log='It is 42.{"n": 42}'
    )


def test_a_task_without_a_verifier_has_no_verdict(tmp_path: Path):
    step = make_step(tmp_path, test="")
    step = step.model_copy(update={"verifier": Verifier(tests=())})
    task = make_task(tmp_path, step)
    assert task.environment is not None
    hosting = hosting_in(tmp_path)
    machine = hosting.machine(task.environment)
    assert Stage(task, machine, hosting).verify(step, Left()) is None
    assert machine.opened is None


FULL, HALF = Verdict(rewards={"a": 1, "b": 1}), Verdict(rewards={"a": 0.5})
BROKEN = Verdict(error="no reward", log="it fell over")


@pytest.mark.parametrize(
    ("strategy", "verdicts", "rewards"),
    [
        ("mean", [FULL, HALF], {"a": 0.75, "b": 0.5}),
        ("mean", [FULL, None], {"a": 1, "b": 1}),
        ("final", [FULL, HALF], {"a": 0.5}),
        ("final", [HALF, FULL, None], {"a": 1, "b": 1}),
    ],
)
def test_rewards_of_steps_are_combined_as_the_task_says(strategy, verdicts, rewards):
    found = combined(strategy, [(f"step-{n}", one) for n, one in enumerate(verdicts)])
    assert found is not None
    assert (found.rewards, found.error) == (rewards, None)


def test_steps_without_any_verifier_have_no_verdict():
    assert combined("mean", [("one", None)]) is None


def test_a_verifier_that_failed_leaves_the_whole_without_a_reward():
    found = combined("mean", [("one", FULL), ("two", BROKEN)])
    assert found is not None
    assert (found.rewards, found.error) == ({}, "step two: no reward")
    assert found.log == "[step one]\n\n[step two]\nit fell over"


def test_rewards_that_cannot_be_added_are_the_verifiers_error():
    vast = Verdict(rewards={"reward": 1.7e308})
    found = combined("mean", [("one", vast), ("two", vast)])
    assert found is not None
    assert (found.rewards, found.error) == ({}, "the steps' rewards are too large to be added")


@pytest.mark.parametrize(
    ("least", "verdict", "why"),
    [
        ({}, HALF, None),
        ({"a": 0.5}, HALF, None),
        ({"a": 0.6}, HALF, "a 0.5 is below 0.6, which is needed to go on"),
        ({"b": 0}, HALF, "no reward 'b', and 0 is needed to go on"),
        ({"a": 0}, None, "no reward 'a', and 0 is needed to go on"),
        ({}, None, None),
        ({}, BROKEN, "no reward"),
    ],
)
def test_what_keeps_the_next_steps_from_beginning(least, verdict, why):
    assert shortfall(least, verdict) == why
