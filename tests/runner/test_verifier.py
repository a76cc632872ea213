"""Reading a reward from a folder that the agent's own code may have written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.runner.verifier import REWARD_BYTES, read_rewards, verify
from harness.sandbox.container import FolderContainer
from harness.schema.environment import Verifier, folder_environment
from harness.schema.results import Verdict
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


def verdict_of(
    script: str, container: FolderContainer, folder: Path, *, timeout_s: float = 60
) -> Verdict:
    """What comes of a verifier, run for real."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test.sh").write_text(script)
    verifier = Verifier(tests=(folder / "tests",), timeout_s=timeout_s)
    return verify(
        verifier,
        container,
        answer="It is 42.",
        output={"n": 42},
        output_seen=True,
    )


def test_the_verifier_sees_answer_and_output_and_its_exit_code_does_not_count(
    container: FolderContainer, tmp_path: Path
):
    script = """
cat /logs/agent/answer.txt /logs/agent/output.json
echo 0.5 > /logs/verifier/reward.txt
exit 3
"""
    assert verdict_of(script, container, tmp_path) == Verdict(
        rewards={"reward": 0.5}, log='It is 42.{"n": 42}'
    )


@pytest.mark.parametrize(
    "trick",
    [
        "rm -r /logs/verifier; ln -s {host} /logs/verifier",
        "ln -s {host}/reward.txt /logs/verifier/reward.txt",
        "mkfifo /logs/verifier/reward.json",
        "truncate -s 8T /logs/verifier/reward.json",
        "rm -r /logs/verifier; echo 1 > /logs/verifier",
        "ln -s /dev/zero /logs/verifier/reward.txt",
    ],
)
def test_a_hostile_verifier_gets_no_reward_and_stops_nothing(
    container: FolderContainer, tmp_path: Path, trick: str
):
    host = tmp_path / "host"
    host.mkdir()
    (host / "reward.txt").write_text("1")
    verdict = verdict_of(trick.format(host=host), container, tmp_path)
    assert verdict.rewards == {}
    assert verdict.error is not None


def test_a_verifier_that_does_not_end_is_an_error(container: FolderContainer, tmp_path: Path):
    verdict = verdict_of("echo started; sleep 60", container, tmp_path, timeout_s=1)
    assert (verdict.error, verdict.rewards) == ("the verifier did not end within 1 s", {})
