"""Our cassettes behind vcrpy's own interface."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest
from vcr import VCR  # type: ignore[import-untyped]

from harness.cassette import register
from harness.errors import BadInputError, ReplayMissError
from tests.cassette.loopback import ask_openai, upstream, user

NOWHERE = 1


def test_a_vcr_records_and_replays_our_cassettes(tmp_path: Path):
    vcr = register(VCR(cassette_library_dir=str(tmp_path), serializer="harness"))
    with upstream() as server, vcr.use_cassette("one.jsonl") as session:
        assert ask_openai(server.port, user("one")) == "answer 1"
    assert session.recorded == 1
    assert '"kind":"interaction"' in (tmp_path / "one.jsonl").read_text()

    def replay(text: str) -> str:
        with suppress(openai.BadRequestError):
            return ask_openai(NOWHERE, user(text))
        return ""

    vcr.record_mode = "none"
    decorated = vcr.use_cassette("one.jsonl")(replay)
    assert decorated("one") == "answer 1"
    with pytest.raises(ReplayMissError):
        decorated("two")


@pytest.mark.parametrize("called", [True, False])
def test_a_decorated_function_names_its_cassette(tmp_path: Path, called: bool):
    vcr = register(
        VCR(
            cassette_library_dir=str(tmp_path),
            serializer="harness",
            path_transformer=VCR.ensure_suffix(".jsonl"),
        )
    )

    def count(port: int) -> str:
        return ask_openai(port, user("one"))

    decorated = vcr.use_cassette()(count) if called else vcr.use_cassette(count)
    with upstream() as server:
        decorated(server.port)
    assert (tmp_path / "count.jsonl").exists()
    assert decorated(NOWHERE) == "answer 1"


def test_other_serializers_stay_vcrpys(tmp_path: Path):
    vcr = register(VCR())
    path = tmp_path / "0.yaml"
    with upstream() as server, vcr.use_cassette(str(path)) as cassette:
        ask_openai(server.port, user("one"))
    assert cassette.play_count == 0
    assert path.read_text().startswith("interactions:")
    with vcr.use_cassette(str(tmp_path / "0.jsonl"), serializer="harness", record_mode="none"):
        pass


@pytest.mark.parametrize(
    ("settings", "options"),
    [({"ignore_localhost": True}, {}), ({}, {"before_record_request": lambda request: None})],
)
def test_settings_that_would_be_without_effect_are_refused(
    tmp_path: Path, settings: Any, options: Any
):
    vcr = register(VCR(serializer="harness", **settings))
    with pytest.raises(BadInputError, match=next(iter({**settings, **options}))):
        vcr.use_cassette(str(tmp_path / "0.jsonl"), **options)
