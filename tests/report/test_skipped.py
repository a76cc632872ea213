"""A trial that this machine cannot run: shown, told apart, and in no number."""

from __future__ import annotations

from harness.report.html import render
from harness.report.marks import anchor
from harness.schema.loop_config import TerminationReason
from harness.schema.results import Verdict
from tests.report.page import parse
from tests.report.sample_run import sample_run

ERROR = "not runnable here: needs <b>1 GPU</b>"


def test_what_a_tasks_files_ask_for_and_is_not_done_is_listed_on_its_page():
    sample = sample_run(tasks=("sum-sales",), variants=("baseline",), repeats=1)
    lines = ("Dockerfile, line 3: RUN <apt-get> install gcc", "Python 3.12 is asked for")
    trial = sample.trials[0].model_copy(update={"ignored": lines})
    page = parse(render(sample.run, (trial,), sample.load))
    listed = page.one("article", id=anchor(trial)).one("details")
    assert [item.text for item in listed.all("li")] == list(lines)
    assert listed.one("summary").text.startswith("2 things that the task's files ask for are not")


def test_a_skipped_trial_is_told_apart_from_one_without_a_result():
    sample = sample_run(tasks=("sum-sales",), variants=("baseline",), repeats=2)
    skipped, other = (
        sample.trials[0].model_copy(
            update={
                "termination_reason": TerminationReason.SKIPPED,
                "outcome": None,
                "error": ERROR,
                "iterations": 1000,
            }
        ),
        sample.trials[1].model_copy(update={"outcome": "passed"}),
    )
    page = parse(render(sample.run, (skipped, other), sample.load))
    notices = page.one("section", id="notices").text
    assert "1 trial was not run: this machine cannot run the task" in notices
    assert f"sum-sales: {ERROR}" in notices
    assert "no result" not in notices
    total = page.one("td", data_total="baseline")
    assert total.one(css="passed-of").text == "1/1"
    assert float(total.one("span", css="iterations").text) == other.iterations
    article = page.one("article", id=anchor(skipped))
    assert "not run here" in article.text
    assert ERROR in article.text


def test_what_a_trial_ran_in_is_told_with_the_run_and_on_its_page():
    sample = sample_run(tasks=("sum-sales",), variants=("baseline",), repeats=3)
    update = {"sandbox": "unshare", "own_verifier": True}
    live = [trial.model_copy(update=update) for trial in sample.trials[:2]]
    text = render(sample.run, (*live, sample.trials[2]), sample.load)
    page = parse(text)
    assert "unshare (2 trials)" in page.text
    article = page.one("article", id=anchor(live[0]))
    assert "on a machine of its own" in article.text
    assert "unshare" in article.text
    other = page.one("article", id=anchor(sample.trials[2])).text
    assert "unshare" not in other
    assert "machine of its own" not in other


def test_why_a_trial_has_no_verdict_is_told_above_the_numbers():
    sample = sample_run(tasks=("sum-sales",), variants=("baseline",), repeats=1)
    verdict = Verdict(error="the verifier left no <reward>")
    trial = sample.trials[0].model_copy(update={"outcome": None, "verdict": verdict})
    page = parse(render(sample.run, (trial,), sample.load))
    assert "sum-sales: the verifier left no <reward>" in page.one("section", id="notices").text
