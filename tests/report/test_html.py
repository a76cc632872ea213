"""The page as a file: the same every time, self-contained, and inert whatever it shows."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from harness.errors import BadInputError
from harness.report.html import render
from tests.report.golden_page import GOLDEN, REFRESH, golden_page
from tests.report.hostile import HOSTILE, hostile_run
from tests.report.page import Node, parse
from tests.report.sample_run import sample_run

FEW = ("contact-card", "meeting-slot", "new-release", "sum-sales")
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "div", "main", "header", "footer"),
    *("section", "article", "nav", "h1", "h2", "h3", "p", "a", "b", "strong", "code", "pre"),
    *("span", "br", "ul", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tfoot"),
    *("details", "summary"),
    *("tr", "th", "td", "figure", "figcaption", "svg", "line", "circle", "path"),
}
LOADING = {"src", "srcset", "data", "poster", "background", "action", "formaction", "ping"}


def test_a_tiny_run_renders_as_it_did():
    kept = GOLDEN.read_text(encoding="utf-8").splitlines()
    now = golden_page().splitlines()
    changed = [pair for pair in zip(kept, now, strict=False) if pair[0] != pair[1]][:3]
    assert (len(kept), changed) == (len(now), []), f"if this is wanted: {REFRESH}"


def test_the_same_log_in_another_order_gives_the_same_page():
    sample = sample_run(tasks=FEW, repeats=2)
    once = render(sample.run, sample.trials, sample.load)
    assert render(sample.run, sample.trials[::-1], sample.load) == once


@pytest.fixture(scope="module", params=["ordinary", "hostile"])
def page(request) -> Node:
    sample = hostile_run() if request.param == "hostile" else sample_run(tasks=FEW)
    return parse(render(sample.run, sample.trials, sample.load))


def test_nothing_is_loaded_from_anywhere_and_no_script_is_there(page):
    assert {node.tag for node in page.walk()} <= TAGS
    for node in page.walk():
        assert LOADING.isdisjoint(node.attributes)
        assert not [name for name in node.attributes if name.startswith("on")]
        assert "style" not in node.attributes
        assert node.attributes.get("href", "#").startswith("#")
    css = page.one("style").raw
    assert "url(" not in css
    assert "@import" not in css


def test_the_policy_allows_the_pages_own_style_and_nothing_else(page):
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    digest = base64.b64encode(hashlib.sha256(page.one("style").raw.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_every_link_leads_to_something_on_the_page(page):
    anchors = [node.attributes["id"] for node in page.walk() if "id" in node.attributes]
    assert len(anchors) == len(set(anchors))
    links = {node.attributes["href"] for node in page.all("a")}
    assert {link.removeprefix("#") for link in links} <= set(anchors)
    assert not [anchor for anchor in anchors if re.search(r"\s", anchor)]


def test_tables_and_pictures_can_be_understood_without_seeing_them(page):
    for table in page.all("table"):
        assert table.one("caption").text
    for svg in page.all("svg"):
        hidden = svg.attributes.get("aria-hidden") == "true"
        inner = svg.attributes.get("class") == "at"
        assert hidden or inner or (svg.attributes["role"] == "img" and svg.attributes["aria-label"])
    for link in page.all("a"):
        assert link.text or link.attributes["aria-label"]


def test_hostile_text_is_shown_word_for_word_with_hidden_characters_visible():
    sample = hostile_run()
    html = render(sample.run, sample.trials, sample.load)
    html.encode()  # an unpaired surrogate would not be written
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\ufeff\ud800-\udfff]", html)
    shown = HOSTILE.replace("\x00\x1b[31mred\x07", "␀␛[31mred␇")
    shown = shown.replace(
        "\u202egnirts\u202c \u200b\ufeff", "⟨U+202E⟩gnirts⟨U+202C⟩ ⟨U+200B⟩⟨U+FEFF⟩"
    )
    shown = shown.replace("\ud800 \r\n\x85", "⟨U+D800⟩ ␍\n⟨U+0085⟩")
    article = parse(html).all("article", css="trial")[0]
    said = [pre.raw.removeprefix("\n") for pre in article.all("pre", css="said")]
    assert said.count(shown) == 3  # instruction, agent, and the text after the results
    results = [pre.raw.removeprefix("\n") for pre in article.all("pre", css="code")]
    assert results.count(shown) == 4  # broken arguments, and three results


def test_a_trial_page_has_links_to_the_repeats_near_its_own():
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=30)
    articles = parse(render(sample.run, sample.trials, sample.load)).all("article", css="trial")
    near = {0: range(11), 15: range(5, 26), 29: range(19, 30)}
    for repeat, expected in near.items():
        links = articles[repeat].one("p", css="others").all("a")
        linked = [int(link.text.rpartition(" ")[2]) for link in links]
        assert linked == [other for other in expected if other != repeat]


def test_text_that_begins_with_a_newline_keeps_it():
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1)
    trial = sample.trials[0]
    trajectory = sample.trajectories[trial.trial_id]
    text = trajectory.messages[0].content[0].model_copy(update={"text": "\n\n  two lines down"})
    first = trajectory.messages[0].model_copy(update={"content": (text,)})
    changed = trajectory.model_copy(update={"messages": (first, *trajectory.messages[1:])})
    page = parse(render(sample.run, sample.trials, lambda _: changed))
    # Browsers drop the first newline after <pre>; the template writes that one.
    assert page.all("pre", css="said")[1].raw == "\n\n\n  two lines down"


def test_a_run_without_trials_and_one_with_a_single_variant_have_pages_too():
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=2)
    one = parse(render(sample.run, sample.trials, sample.load))
    assert "nothing to compare" in one.one("section", id="verdicts").text
    none = parse(render(sample.run, (), sample.load))
    assert "2 of 2 planned trials are not in the log" not in none.text
    assert "None of the 2 planned trials is in the log" in none.text


def test_a_trial_whose_trajectory_is_gone_shows_what_the_log_says():
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1)
    page = parse(render(sample.run, sample.trials, lambda _: None))
    article = page.one("article", css="trial")
    assert "trajectory file of this trial is not there" in article.text
    assert article.one("table", css="scores")


def test_trials_that_were_planned_and_are_not_there_are_marked():
    sample = sample_run(tasks=FEW, variants=("baseline", "skills"))
    page = parse(render(sample.run, sample.trials[:-2], sample.load))
    assert "2 of 24 planned trials are not in the log" in page.one(id="notices").text
    cell = page.one("td", data_task="sum-sales", data_variant="skills")
    marks = cell.all(css="mark")
    assert [mark.attributes["class"] for mark in marks][1:] == ["mark missing"] * 2
    assert marks[1].attributes["aria-label"].endswith("not in the log")
    assert marks[1].attributes.get("href") is None


def test_another_baseline_can_be_chosen():
    sample = sample_run(tasks=FEW, variants=("baseline", "skills"))
    page = parse(render(sample.run, sample.trials, sample.load, baseline="skills"))
    assert page.one("article", css="verdict").one("h3").text == "baseline vs skills"


def test_a_baseline_without_trials_is_refused():
    sample = sample_run(tasks=("clean-names",), variants=("baseline", "skills"), repeats=1)
    with pytest.raises(BadInputError) as refused:
        render(sample.run, sample.trials, sample.load, baseline="relfection")
    assert str(refused.value) == (
        "baseline 'relfection' has no trials in run '20261122-101500-basics': "
        "choose from baseline, skills"
    )


def test_every_word_used_for_an_ending_is_explained():
    sample = sample_run(tasks=FEW)
    page = parse(render(sample.run, sample.trials, sample.load))
    explained = {entry.text for entry in page.one("section", id="glossary").all("dt")}
    occurring = {trial.termination_reason.replace("_", " ") for trial in sample.trials}
    assert occurring <= explained


def test_stacked_tables_keep_their_roles_and_name_each_cell_after_its_column():
    sample = sample_run(tasks=FEW)
    page = parse(render(sample.run, sample.trials, sample.load))
    roles = {"table": {"table"}, "thead": {"rowgroup"}, "tbody": {"rowgroup"}, "tr": {"row"}}
    roles |= {"tfoot": {"rowgroup"}, "th": {"columnheader", "rowheader"}, "td": {"cell"}}
    tables = page.all("table", css="stacked")
    assert len(tables) > 5
    for table in tables:
        parts = [table, *(part for part in table.walk() if part.tag in roles)]
        assert [one.tag for one in parts if one.attributes.get("role") not in roles[one.tag]] == []
        heads = [head.text for head in table.one("thead").all("th")][1:]
        for row in (row for row in table.all("tr") if row.all("td") and not row.all(colspan="4")):
            labels = [cell.attributes.get("data-label") for cell in row.all("td")]
            assert set(labels) == {None} or labels == heads
