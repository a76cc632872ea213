"""The page of a run of scenarios."""

from __future__ import annotations

import pytest

from harness.report.html import render
from harness.schema.loop_config import TerminationReason
from harness.schema.results import Score
from harness.schema.suite import ModelConfig
from tests.report.hostile import HOSTILE
from tests.report.page import Node, parse
from tests.report.sample_run import SampleRun, sample_run

TASKS = ("clean-names", "fix-average", "sum-sales")
TITLE = "counts <b>all</b> sales"
LINES = ("iterations: expected 2, got 1", 'final_text: expected "done", got "<i>no</i>"')


def scenario_run(*, failing: str | None = "sum-sales", repeats: int = 1) -> SampleRun:
    sample = sample_run(tasks=TASKS, variants=("baseline",), repeats=repeats)
    model = ModelConfig(provider="scripted", name="scripted")
    variant = sample.run.variants[0].model_copy(update={"name": "scripted", "model": model})
    trials = []
    for trial in sample.trials:
        fails = trial.task == failing
        text = "\n".join(f"{trial.task}: {line}" for line in LINES) if fails else ""
        update = {
            "variant": "scripted",
            "outcome": "failed" if fails else "passed",
            "scores": {"scenario": Score(value=float(not fails), explanation=text)},
            "cassette": None,
        }
        trials.append(trial.model_copy(update=update))
    run = sample.run.model_copy(update={"variants": (variant,), "titles": {"sum-sales": TITLE}})
    return SampleRun(run, tuple(trials), sample.trajectories)


def rendered(sample: SampleRun) -> Node:
    return parse(render(sample.run, sample.trials, sample.load))


@pytest.fixture(scope="module")
def page() -> Node:
    return rendered(scenario_run())


def test_first_comes_how_many_hold_and_then_what_does_not(page):
    results = page.one("section", id="results")
    assert results.one("h2").text == "2 of 3 scenarios hold"
    (entry,) = results.one("ul", css="scenarios").all("h3")
    assert entry.text.split()[1] == "sum-sales"
    assert entry.one(css="title").text == TITLE
    assert [line.text for line in results.one("ul", css="unmet").all("li")] == list(LINES)


def test_those_that_hold_are_folded(page):
    folded = page.one("details")
    assert folded.one("summary").text == "2 that hold"
    assert [link.text for link in folded.all("a")] == ["clean-names", "fix-average"]
    assert not rendered(scenario_run(failing=None)).all("ul", css="scenarios")


def test_nothing_is_said_of_comparisons_prices_and_cassettes(page):
    for word in ("Verdicts", "nothing to compare", "Cassette", "Cost", "Answered by", "variant of"):
        assert word not in page.one("body").text
    assert not page.all("table")


def test_every_link_leads_to_something(page):
    anchors = {node.attributes["id"] for node in page.walk() if "id" in node.attributes}
    assert {link.attributes["href"].removeprefix("#") for link in page.all("a")} <= anchors


def test_the_trials_page_has_title_and_differences_once(page):
    article = page.all("article", css="trial")[-1]
    assert article.one("h1").text == "sum-sales"
    assert article.one("p", css="lead").text == TITLE
    assert article.one("p", css="state").text.startswith("✗does not hold")
    for line in LINES:
        assert article.text.count(line) == 1


def test_repeats_are_one_entry_with_a_mark_each():
    page = rendered(scenario_run(repeats=2))
    assert page.one("h2", css="headline").text == "2 of 3 scenarios hold"
    listed = page.one("ul", css="scenarios")
    assert len(listed.all("a", css="mark")) == 2
    assert len(listed.one("ul", css="unmet").all("li")) == 2


def test_a_scenario_is_judged_whatever_its_ending():
    sample = scenario_run(failing=None)
    ended = {"termination_reason": TerminationReason.INFRASTRUCTURE_ERROR}
    trials = tuple(trial.model_copy(update=ended) for trial in sample.trials)
    page = rendered(SampleRun(sample.run, trials, sample.trajectories))
    assert page.one("h2", css="headline").text == "3 of 3 scenarios hold"
    assert not page.all("section", id="notices")


def test_a_run_without_trials_has_a_page_too():
    sample = scenario_run()
    page = parse(render(sample.run, (), sample.load))
    assert "None of the 3 planned trials is in the log" in page.text
    assert page.one("h2", css="headline").text == "0 of 0 scenarios hold"


def test_hostile_titles_and_differences_stay_text():
    sample = scenario_run()
    score = {"scenario": Score(value=0.0, explanation=HOSTILE)}
    trials = tuple(
        one.model_copy(update={"scores": score, "outcome": "failed"}) for one in sample.trials
    )
    run = sample.run.model_copy(update={"titles": dict.fromkeys(TASKS, HOSTILE)})
    tags = {node.tag for node in rendered(sample).walk()}
    page = rendered(SampleRun(run, trials, sample.trajectories))
    assert {node.tag for node in page.walk()} <= tags
    for node in page.walk():
        assert not [name for name in node.attributes if name.startswith("on") or name == "src"]
