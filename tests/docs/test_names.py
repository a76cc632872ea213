"""The pages of the documentation leave nothing out and name nothing that is not there."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from harness.agents import Agent
from harness.loop.callbacks import Callbacks
from harness.loop.setup import Setup
from harness.providers.catalog import VENDORS
from harness.schema.loop_config import LoopConfig
from harness.schema.suite import ModelConfig
from tests.docs.pages import PAGES, ROOT, blocks, code, prose
from tests.docs.test_loop_page import settings

AGENTS, MIGRATION, PROVIDERS = (
    ROOT / "docs" / f"{name}.md" for name in ("agents", "migration", "providers")
)


def words(page: Path) -> set[str]:
    return {word for span in code(prose(page)) for word in re.findall(r"\w+", span)}


def test_every_argument_of_an_agent_is_there() -> None:
    own = set(inspect.signature(Agent).parameters) - {"loop"}
    passed_on = {field.name for field in dataclasses.fields(Setup)}
    assert (own | passed_on) - words(AGENTS) == set()


def test_every_provider_and_every_setting_of_a_model_is_there() -> None:
    assert {*VENDORS, *ModelConfig.model_fields} - words(PROVIDERS) == set()
    assert {vendor.key_variable for vendor in VENDORS.values()} - words(PROVIDERS) == set()


def test_every_callback_is_there() -> None:
    assert {field.name for field in dataclasses.fields(Callbacks)} - words(MIGRATION) == set()


@cache
def words_of_the_code() -> frozenset[str]:
    sources = (path.read_text() for path in (ROOT / "harness").rglob("*.py"))
    return frozenset(word for source in sources for word in re.findall(r"\w+", source))


def words_of_the_examples(page: Path) -> set[str]:
    """What a page defines by itself."""
    shown = [block for block in blocks(page) if block.language in ("python", "toml", "yaml")]
    return {word for block in shown for word in re.findall(r"\w+", f"{block.file} {block.text}")}


def ours(page: Path) -> str:
    """What a page says in our terms: the first column of the migration page is in others'."""
    text = prose(page)
    return re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE) if page == MIGRATION else text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_nothing_that_does_not_exist(page: Path) -> None:
    known = words_of_the_code() | words_of_the_examples(page)
    names = [
        word
        for span in code(ours(page))
        for word in re.findall(r"\w+", span)
        if re.fullmatch(r"[a-z]+(_[a-z]+)+|[A-Z][a-z]+([A-Z][a-z]*)+", word)
    ]
    assert len(names) > 3
    assert sorted({name for name in names if name not in known}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_no_setting_that_does_not_exist(page: Path) -> None:
    known = {name for name, _ in settings(LoopConfig)} | {"confirm", "budget"}
    named = [span.removeprefix("loop.") for span in code(ours(page)) if span.startswith("loop.")]
    groups = {name.partition(".")[0] for name in known if "." in name}
    named += [span for span in code(ours(page)) if span.partition(".")[0] in groups]
    without_values = [re.split(r"[ =:]", name)[0] for name in named]
    assert [name for name in without_values if name not in known] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_a_page_links_to_what_is_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text())
    for link in links:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            heads = re.findall(r"^#+ (.+)$", target.read_text(), flags=re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]
            assert anchor in slugs, link
