"""Every number in the summary and the tables equals what trials.jsonl gives."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter, defaultdict
from fnmatch import fnmatch
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from harness.analysis import numbers
from harness.analysis.compare import compare_variants
from harness.report.html import render
from harness.runner.log import RunLog
from tests.report.page import Node, parse
from tests.report.sample_run import SampleRun, sample_run

Line = dict[str, Any]
UNSCORED = ("replay_miss", "infrastructure_error")


ROOT = Path(__file__).parents[2]
MADE_UP = pytest.mark.parametrize("sample", ["made up"], indirect=True)


@pytest.fixture(scope="module", params=["made up", pytest.param("shipped", marks=pytest.mark.slow)])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SampleRun:
    """A run that has everything, and the one that `harness demo` shows."""
    if request.param == "made up":
        return sample_run()
    out = tmp_path_factory.mktemp("shipped") / "run"
    command = [sys.executable, "-c", "from harness.cli import main; main()"]
    replay = ("run", "suites/basics", "--out", str(out), "-q")
    subprocess.run([*command, *replay], cwd=ROOT, capture_output=True, check=True)
    log = RunLog(out)
    trials = log.trials()
    stories = {trial.trial_id: log.trajectory(trial) for trial in trials}
    return SampleRun(log.run(), trials, {k: v for k, v in stories.items() if v is not None})


@pytest.fixture(scope="module")
def lines(sample: SampleRun) -> list[Line]:
    return [json.loads(trial.model_dump_json()) for trial in sample.trials]


@pytest.fixture(scope="module")
def page(sample: SampleRun) -> Node:
    return parse(render(sample.run, sample.trials, sample.load))


def label(ending: str) -> str:
    return ending.replace("_", " ")


def tokens(line: Line) -> int | None:
    usage = line["usage"]
    known = [usage[key] for key in ("input", "output", "cache_write", "cache_read")]
    known = [count for count in known if count is not None]
    return sum(known) if known and not usage["missing_calls"] else None


def average(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def tally_of(cell: Node) -> tuple[str, dict[str, str], str, str]:
    """Passed of judged, endings, mean iterations, mean tokens, as the page has them."""
    endings = {}
    for span in cell.one("div", css="endings").all("span"):
        if span.attributes.get("class") == "count":
            continue
        count, _, ending = span.text.partition(" ")
        endings[ending] = count
    return (
        cell.one(css="passed-of").text,
        endings,
        cell.one("span", css="iterations").text,
        cell.one("span", css="tokens").text,
    )


def expected_tally(lines: list[Line]) -> tuple[str, dict[str, str], str, str]:
    scored = [line for line in lines if line["termination_reason"] not in UNSCORED]
    judged = [line for line in scored if line["outcome"] is not None]
    passed = [line for line in judged if line["outcome"] == "passed"]
    return (
        f"{len(passed)}/{len(judged)}",
        {
            label(ending): str(count)
            for ending, count in Counter(line["termination_reason"] for line in lines).items()
        },
        numbers.mean(average([line["iterations"] for line in scored])),
        numbers.mean(average([tokens(line) for line in scored])),
    )


def test_every_cell_of_the_table(page, lines, sample):
    table = page.one("table", css="results")
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line["task"], line["variant"]].append(line)
    assert len(groups) == sum(
        fnmatch(task, glob)
        for variant in sample.run.variants
        for task in sample.run.tasks
        for glob in variant.tasks
    )
    for task in sample.run.tasks:
        for variant in sample.run.variants:
            cell = table.one("td", data_task=task, data_variant=variant.name)
            group = groups.get((task, variant.name))
            if group is None:
                assert cell.text == "–"
                assert cell.one("span").attributes["aria-label"] == "not run"
                continue
            assert tally_of(cell) == expected_tally(group)
            marks = cell.all("a", css="mark")
            assert [mark.attributes["href"] for mark in marks] == [
                f"#trial/{line['trial_id']}" for line in sorted(group, key=lambda x: x["repeat"])
            ]
            for mark, line in zip(marks, sorted(group, key=lambda x: x["repeat"]), strict=True):
                said = mark.attributes["aria-label"]
                assert label(line["termination_reason"]) in said
                unscored = line["termination_reason"] in UNSCORED
                assert ("no result" if unscored else line["outcome"] or "no verdict") in said
                assert ("several models" in said) is line["mixed"]


def test_every_total(page, lines, sample):
    table = page.one("table", css="results")
    for variant in sample.run.variants:
        mine = [line for line in lines if line["variant"] == variant.name]
        scored = [line for line in mine if line["termination_reason"] not in UNSCORED]
        judged = [line for line in scored if line["outcome"] is not None]
        cell = table.one("td", data_total=variant.name)
        assert tally_of(cell) == expected_tally(mine)
        rate = sum(line["outcome"] == "passed" for line in judged) / len(judged)
        assert cell.one("b", css="rate").text == numbers.percent(rate)
        cost = average([line["cost_usd"] for line in scored])
        shown = [span.text for span in cell.all("span", css="cost")]
        assert shown == ([] if cost is None else [numbers.dollars(cost)])
        took = average([line["duration_s"] for line in scored])
        assert cell.one("span", css="duration").text == numbers.seconds(took)
        tasks = {line["task"] for line in mine}
        extent = cell.one("div", css="on-tasks")
        assert extent.text.startswith(f"on {len(tasks)} of {len(sample.run.tasks)} tasks")
        there = [x for x in lines if x["variant"] == "baseline" and x["task"] in tasks]
        if len(tasks) < len(sample.run.tasks):
            said = extent.one("span", css="baseline-there").text
            assert said == expected_tally(there)[0]


def usable_pairs(lines: list[Line], candidate: str) -> list[tuple[Line, Line]]:
    usable = [
        line for line in lines if line["termination_reason"] not in UNSCORED and not line["mixed"]
    ]
    base = {(x["task"], x["repeat"]): x for x in usable if x["variant"] == "baseline"}
    return [
        (base[line["task"], line["repeat"]], line)
        for line in usable
        if line["variant"] == candidate and (line["task"], line["repeat"]) in base
    ]


VALUES = {
    "pass_rate": lambda line: {"passed": 1.0, "failed": 0.0}.get(line["outcome"]),
    "iterations": lambda line: line["iterations"],
    "attempts": lambda line: line["attempts"],
    "tool_calls": lambda line: line["tool_calls_made"],
    "tokens": tokens,
    "cost_usd": lambda line: line["cost_usd"],
}


@pytest.mark.parametrize("candidate", ["reflection", "double-confirmation", "skills"])
def test_every_metric_and_every_difference_per_task(page, lines, sample, candidate):
    pairs = usable_pairs(lines, candidate)
    section = section_of(page, sample, candidate)
    every = section.one("table", css="metrics").one("tbody").all("tr")[:-1]
    parts = section.one("table", css="metrics").all("tr", css="part")
    rows = [row for row in every if row not in parts]
    comparison = compare_variants(sample.trials, "baseline", candidate)
    assert [row.one("th").text for row in parts] == ["input tokens", "output tokens"]
    for row, part in zip(parts, comparison.token_parts, strict=True):
        assert [cell.text for cell in row.all("td")][:3] == [
            numbers.mean(part.baseline_mean),
            numbers.mean(part.candidate_mean),
            numbers.ratio(part.ratio),
        ]
    has_cost = any(line["cost_usd"] for line in lines)
    assert len(rows) == len(comparison.metrics) == len(VALUES) - (0 if has_cost else 1)
    for row, metric in zip(rows, comparison.metrics, strict=True):
        tasks = task_means(pairs, VALUES[metric.metric])
        cells = [cell.text for cell in row.all("td")]
        effect = fmean(effect_of(metric.metric, *means) for means in tasks.values())
        if metric.kind == "ratio":
            effect = math.exp(effect)
        assert cells[:3] == [
            numbers.metric_value(metric.metric, fmean(means[0] for means in tasks.values())),
            numbers.metric_value(metric.metric, fmean(means[1] for means in tasks.values())),
            in_its_unit(metric.metric, effect),
        ]
        assert cells[3:6] == [
            numbers.metric_interval(metric),
            numbers.p_value(metric.p),
            numbers.p_value(metric.adjusted_p),
        ]
        assert metric.conclusion in cells[6]
        check_picture(section, metric.metric, tasks)


def task_means(pairs: list[tuple[Line, Line]], value: Any) -> dict[str, tuple[float, float]]:
    tasks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one, other in pairs:
        if value(one) is not None and value(other) is not None:
            tasks[one["task"]].append((value(one), value(other)))
    return {
        task: (fmean(one for one, _ in members), fmean(other for _, other in members))
        for task, members in tasks.items()
    }


def effect_of(metric: str, one: float, other: float) -> float:
    return math.log(other / one) if metric in ("tokens", "cost_usd") else other - one


def in_its_unit(metric: str, effect: float) -> str:
    if metric in ("tokens", "cost_usd"):
        return numbers.ratio(effect)
    return numbers.points(effect) if metric == "pass_rate" else numbers.signed(effect)


def check_picture(section: Node, metric: Any, tasks: dict[str, tuple[float, float]]) -> None:
    figure = section.one("figure", data_metric=metric)
    if all(one == other for one, other in tasks.values()):
        assert "the same in every task" in figure.text
        return
    rows = [row for row in figure.one("tbody").all("tr") if row.attributes.get("class") != "mean"]
    names = [row.one("th").text for row in rows]
    assert sorted(names) == sorted(tasks)
    sizes = [abs(effect_of(metric, *tasks[name])) for name in names]
    assert sizes == sorted(sizes, reverse=True)
    for row, name in zip(rows, names, strict=True):
        one, other = tasks[name]
        drawing, difference, levels = row.all("td")
        shown = [numbers.metric_value(metric, value) for value in (one, other)]
        assert levels.text == " → ".join(shown)
        effect = effect_of(metric, one, other)
        ratio = metric in ("tokens", "cost_usd")
        assert difference.text == in_its_unit(metric, math.exp(effect) if ratio else effect)
        dot = drawing.all(css="dot")[0]
        at = dot.attributes.get("cx") or drawing.one("svg", css="at").attributes["x"]
        assert (float(at.rstrip("%")) - 50) * effect >= 0


def section_of(page: Node, sample: SampleRun, candidate: str) -> Node:
    others = [variant.name for variant in sample.run.variants[1:]]
    return page.one("section", id=f"comparison-{others.index(candidate) + 1}")


@pytest.mark.parametrize("candidate", ["reflection", "double-confirmation", "skills"])
def test_the_matrix_of_endings(page, lines, sample, candidate):
    pairs = usable_pairs(lines, candidate)
    table = section_of(page, sample, candidate).one("table", css="matrix")
    columns = [head.text for head in table.one("thead").all("th")]
    counts: Counter[tuple[str, str]] = Counter()
    for row in table.one("tbody").all("tr"):
        cells = [int(cell.text.replace("·", "0")) for cell in row.all("td")]
        assert cells[-1] == sum(cells[:-1])
        for column, count in zip(columns, cells[:-1], strict=False):
            counts[row.one("th").text, column] += count
    assert +counts == Counter(
        (label(one["termination_reason"]), label(other["termination_reason"]))
        for one, other in pairs
    )
    totals = [int(cell.text) for cell in table.one("tfoot").all("td")]
    after = Counter(label(other["termination_reason"]) for _, other in pairs)
    assert totals == [*(after[column] for column in columns[:-1]), len(pairs)]


@MADE_UP
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_verdicts(page, sample, number):
    candidate = sample.run.variants[number].name
    comparison = compare_variants(sample.trials, "baseline", candidate)
    rate = comparison.metrics[0]
    card = page.all("article", css="verdict")[number - 1]
    figures = [value.text for value in card.one("dl").all("dd")]
    assert rate.minimum_detectable is not None
    assert figures == [
        f"{numbers.percent(rate.baseline_mean)} → {numbers.percent(rate.candidate_mean)}",
        numbers.points(rate.effect),
        numbers.metric_interval(rate),
        numbers.p_value(rate.adjusted_p),
        numbers.detectable(rate.minimum_detectable),
        f"{comparison.pairs} on {comparison.tasks} tasks",
    ]
    assert card.one("h3").text == f"{candidate} vs baseline"
    said = f"{candidate} vs baseline: " + card.one("p", css="verdict-text").text.lower()
    assert said == comparison.headline.replace(" -> ", " → ").lower()
    assert str(comparison.conclusion) in card.one(css="badge").text
    notes = [note.replace(" -> ", " → ") for note in comparison.notes]
    assert [item.text for item in card.all("li")] == notes


@MADE_UP
def test_what_stands_apart_is_counted_before_the_verdicts(page, lines):
    notices = page.one("section", id="notices")
    unscored = [x["trial_id"] for x in lines if x["termination_reason"] in UNSCORED]
    mixed = [x["trial_id"] for x in lines if x["mixed"]]
    unjudged = [
        x["trial_id"]
        for x in lines
        if x["outcome"] is None and x["termination_reason"] not in UNSCORED
    ]
    assert (len(unscored), len(mixed), len(unjudged)) == (2, 1, 1)
    assert "1 trial has no verdict" in notices.text
    assert "2 trials have no result" in notices.text
    assert "1 infrastructure error and 1 replay miss" in notices.text
    assert "1 trial was answered by several models" in notices.text
    linked = [link.attributes["href"] for link in notices.all("a")]
    assert sorted(linked) == sorted(f"#trial/{name}" for name in unscored + mixed + unjudged)


@MADE_UP
def test_what_was_run_adds_up(page, lines):
    section = page.one("section", id="run")
    facts = {entry.one("dt").text: entry.one("dd").text for entry in section.one("dl").all("div")}
    calls, served = (sum(line[key] for line in lines) for key in ("model_calls", "served"))
    assert facts["Trials"] == str(len(lines))
    assert facts["Model calls"] == (
        f"{calls} in all: {served} from the cassette, 0 live, {calls - served} without an answer"
    )


@MADE_UP
def test_every_trial_page_has_its_own_numbers(page, lines):
    for line in lines:
        article = page.one("article", id=f"trial/{line['trial_id']}")
        facts = {
            entry.one("dt").text: entry.one("dd").text
            for entry in article.all("dl", css="facts")[0].all("div")
        }
        usage = line["usage"]
        assert facts["Iterations"] == str(line["iterations"])
        assert facts["Attempts"] == str(line["attempts"])
        assert facts["Model calls"].split()[0] == str(line["model_calls"])
        assert facts["Tool calls"].split()[0] == str(line["tool_calls_made"])
        assert facts["Tokens"] == f"{usage['input']:,} in, {usage['output']:,} out"
        assert facts["Cost"] == numbers.dollars(line["cost_usd"])
        assert facts["Duration"] == numbers.seconds(line["duration_s"])
        if line["termination_reason"] in UNSCORED:
            assert article.all("table", css="scores") == []
            assert "Not scored" in article.text
        else:
            rows = article.one("table", css="scores").one("tbody").all("tr")
            assert [row.one("th").text for row in rows] == [
                label(name.removesuffix("_usd")) for name in line["scores"]
            ]
