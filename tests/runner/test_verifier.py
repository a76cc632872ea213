"""Reading a reward from a folder that the agent's own code may have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.runner.verifier import REWARD_BYTES, read_rewards, verify
from harness.sandbox import probe
from harness.schema.environment import Verifier
from harness.schema.results import Verdict

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
def test_rewards_are_read(tmp_path: Path, files: dict[str, str], rewards: dict[str, float]):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert read_rewards(tmp_path, "said") == Verdict(rewards=rewards, log="said")


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
def test_a_reward_json_without_finite_numbers_is_an_error(tmp_path: Path, text: str):
    (tmp_path / "reward.json").write_text(text)
    (tmp_path / "reward.txt").write_text("1")
    verdict = read_rewards(tmp_path, "")
    assert verdict.rewards == {}
    assert str(verdict.error).startswith("reward.json holds no finite number: ")
    assert len(str(verdict.error)) < 500


@pytest.mark.parametrize("content", [b"", b"passed", b"nan", b"inf", b"\xff", b"1" * 5000])
def test_a_reward_txt_that_is_no_finite_number_is_an_error(tmp_path: Path, content: bytes):
    (tmp_path / "reward.txt").write_bytes(content)
    verdict = read_rewards(tmp_path, "")
    assert verdict.rewards == {}
    assert str(verdict.error).startswith("reward.txt holds no finite number: ")


def test_no_reward_is_an_error(tmp_path: Path):
    assert read_rewards(tmp_path, "") == Verdict(error=NEITHER)
    assert read_rewards(tmp_path / "gone", "") == Verdict(error=NEITHER)


@pytest.mark.parametrize("size", [REWARD_BYTES + 1, 8 << 40])
@pytest.mark.parametrize("name", ["reward.json", "reward.txt"])
def test_a_file_too_long_is_not_read(tmp_path: Path, name: str, size: int):
    with (tmp_path / name).open("wb") as file:
        file.truncate(size)
    assert read_rewards(tmp_path, "").error == f"{name} is not a plain file of at most 65536 bytes"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path: Path, make):
    make(tmp_path / "reward.json")
    (tmp_path / "reward.txt").write_text("1")
    assert "reward.json is not a plain file" in str(read_rewards(tmp_path, "").error)


def test_links_are_not_followed(tmp_path: Path):
    host = tmp_path / "host"
    host.mkdir()
    (host / "reward.txt").write_text("1")
    (tmp_path / "linked").symlink_to(host)
    assert read_rewards(tmp_path / "linked", "").rewards == {}
    (tmp_path / "verifier").mkdir()
    (tmp_path / "verifier" / "reward.txt").symlink_to(host / "reward.txt")
    verdict = read_rewards(tmp_path / "verifier", "")
    assert verdict.rewards == {}
    assert str(verdict.error).startswith("reward.txt cannot be read: ")


def verdict_of(script: str, folder: Path, *, timeout_s: float = 60) -> Verdict:
    """What comes of a verifier, run for real."""
    for name in ("workspace", "tests"):
        (folder / name).mkdir()
    (folder / "tests" / "test.sh").write_text(script)
    verifier = Verifier(tests=(folder / "tests",), timeout_s=timeout_s)
    return verify(
        verifier,
        folder / "workspace",
        probe.best(),
        answer="It is 42.",
        output={"n": 42},
        output_seen=True,
    )


def test_the_verifier_sees_answer_and_output_and_its_exit_code_does_not_count(tmp_path: Path):
    script = """
cat /logs/agent/answer.txt /logs/agent/output.json
echo 0.5 > /logs/verifier/reward.txt
exit 3
"""
    assert verdict_of(script, tmp_path) == Verdict(
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
def test_a_hostile_verifier_gets_no_reward_and_stops_nothing(tmp_path: Path, trick: str):
    host = tmp_path / "host"
    host.mkdir()
    (host / "reward.txt").write_text("1")
    verdict = verdict_of(trick.format(host=host), tmp_path)
    assert verdict.rewards == {}
    assert verdict.error is not None


def test_a_verifier_that_does_not_end_is_an_error(tmp_path: Path):
    verdict = verdict_of("echo started; sleep 60", tmp_path, timeout_s=1)
    assert (verdict.error, verdict.rewards) == ("the verifier did not end within 1 s", {})
