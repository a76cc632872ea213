"""The page in a real browser: fits a phone, runs nothing, asks nobody for anything."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.report.html import render
from harness.schema.loop_config import UNSCORED, TerminationReason
from tests.report.hostile import ELSEWHERE, hostile_run
from tests.report.page import parse
from tests.report.sample_run import SampleRun, sample_run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")

# Opens the report in a frame as wide as a phone, visits every page in it and says what it found.
# Meant to be unseen there: captions, and headers whose words stand at each cell instead.
VISIT = """<!DOCTYPE html><body><iframe style="width:400px;height:800px;border:0"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  const title = page.title, found = [];
  const all = (selector, parent = page) => [...parent.querySelectorAll(selector)];
  const box = one => one.getBoundingClientRect();
  const style = (one, part) => frame.contentWindow.getComputedStyle(one, part);
  const seen = one => one.getClientRects().length
    && !one.closest(".quiet, .stacked:not(.differences) thead");
  const hint = one => style(one, "::before").content.includes("scroll sideways");
  const hinted = one => [one, one.closest(".scroll")].some(part => part && hint(part));
  const scrolls = one => style(one).display !== "inline" && one.scrollWidth > one.clientWidth + 1;
  const overlap = (one, other) => box(one).right > box(other).left + 0.5
    && box(other).right > box(one).left + 0.5 && box(one).bottom > box(other).top + 0.5
    && box(other).bottom > box(one).top + 0.5;
  const tell = list => list.filter(seen).map(one => one.outerHTML.slice(0, 200));
  for (const anchor of ["overview", ...all(".page").map(one => one.id)]) {
    frame.contentWindow.location.hash = anchor;
    const shown = all(".page, #overview").filter(one => one.offsetHeight);
    const parts = shown.flatMap(one => all("*", one));
    found.push({
      anchor,
      shown: shown.map(one => one.id),
      width: root.scrollWidth,
      wide: tell(parts.filter(one => box(one).right > 400.5 && !hinted(one))),
      cut_off: tell(parts.filter(one => one.clientWidth && scrolls(one) && !hinted(one))),
      overlapping: tell(parts.filter(row => row.localName === "tr").filter(row =>
        [...row.children].some((one, at) =>
          [...row.children].slice(0, at).some(other => overlap(one, other))))),
      hints: parts.filter(hint).length,
      unlabelled: tell(parts.filter(one =>
        one.matches(":is(.variants, .results, .metrics) td:not([colspan])")
        && style(one, "::before").content === "none")),
    });
  }
  const said = {found, title, after: page.title, scripts: page.querySelectorAll("script").length,
    images: page.images.length, frames: frame.contentWindow.length,
    paper: frame.contentWindow.getComputedStyle(page.body).backgroundColor};
  document.body.textContent = JSON.stringify(said);
};
frame.src = "report.html";
</script></body>"""

FLAWS = ("wide", "cut_off", "overlapping", "unlabelled")


def run_of_many_endings() -> SampleRun:
    """More tasks than a picture shows at once, with long names, every ending and large sums."""
    reasons = [reason for reason in TerminationReason if reason not in UNSCORED]
    sample = sample_run(tasks=("clean-names",), variants=("baseline", "skills"), repeats=1)
    trials = [
        trial.model_copy(
            update={
                "trial_id": f"{number}/{trial.variant}",
                "task": f"reconcile-the-accounts-of-subsidiary-{number}",
                "termination_reason": reasons[(number * (2 * step - 1) + step) % len(reasons)],
                "cost_usd": 1234.5678 * (number + 1),
            }
        )
        for number in range(25)
        for step, trial in enumerate(sample.trials, 1)
    ]
    tasks = {trial.task: "digest" for trial in trials}
    run = sample.run.model_copy(update={"tasks": tasks})
    return SampleRun(run, tuple(trials), {})


SAMPLES: dict[str, Callable[[], SampleRun]] = {
    "ordinary": lambda: sample_run(repeats=1),
    "hostile": hostile_run,
    "many endings": run_of_many_endings,
}


class Site:
    """Serves two pages, is every other site's proxy too, and remembers what was asked of it."""

    def __init__(self, report: str) -> None:
        pages = {"/visit.html": VISIT, "/report.html": report}
        asked = self.asked = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                body = pages.get("/" + self.path.rpartition("/")[2])
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((body or "").encode())

            def do_CONNECT(self) -> None:
                asked.append(self.path)
                self.send_error(502)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    sample = SAMPLES[request.param]()
    site = Site(render(sample.run, sample.trials, sample.load))
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def browse(url: str, folder: Path, site: Site, *options: str) -> str:
    assert CHROMIUM is not None
    quiet = "--headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage "
    quiet += "--disable-background-networking --disable-component-update --disable-sync"
    command = [
        *(CHROMIUM, *quiet.split(), f"--user-data-dir={folder}"),
        *(f"--proxy-server=http://{site.address}", "--proxy-bypass-list=<-loopback>"),
        *("--virtual-time-budget=10000", "--dump-dom", *options, url),
    ]
    done = subprocess.run(command, capture_output=True, timeout=110, check=True)
    return done.stdout.decode()


def visit(site: Site, folder: Path, *options: str) -> dict[str, Any]:
    dump = browse(f"http://{site.address}/visit.html", folder, site, *options)
    found: dict[str, Any] = json.loads(html.unescape(parse_body(dump)))
    return found


def parse_body(dump: str) -> str:
    return dump.partition("<body>")[2].rpartition("</body>")[0]


@pytest.mark.parametrize("site", ["ordinary", "hostile", "many endings"], indirect=True)
def test_every_page_fits_400_pixels_alone_and_nothing_runs(site, tmp_path):
    said = visit(site, tmp_path)
    pages = said.pop("found")
    assert len(pages) >= 5
    assert max(page["width"] for page in pages) <= 400
    assert {flaw: entries for page in pages for flaw in FLAWS if (entries := page[flaw])} == {}
    assert [page["shown"] for page in pages] == [[page["anchor"]] for page in pages]
    assert said["title"] == said["after"] != "owned"
    assert (said["scripts"], said["images"], said["frames"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("site", "hints"), [("ordinary", 0), ("many endings", 1)], indirect=["site"]
)
def test_only_a_table_too_wide_for_a_phone_says_that_it_scrolls(site, hints, tmp_path):
    assert sum(page["hints"] for page in visit(site, tmp_path)["found"]) == hints


@pytest.mark.parametrize("site", ["hostile"], indirect=True)
def test_a_page_from_a_file_asks_no_network_for_anything(site, tmp_path):
    page = tmp_path / "report.html"
    sample = hostile_run()
    page.write_text(render(sample.run, sample.trials, sample.load), encoding="utf-8")
    dump = browse(page.as_uri(), tmp_path / "profile", site)
    assert ELSEWHERE in parse(page.read_text(encoding="utf-8")).text
    assert "System prompt 1" in dump
    assert [path for path in site.asked if "report-test.invalid" in path] == []
    assert [path for path in site.asked if site.address in path] == []


@pytest.mark.parametrize("site", ["hostile"], indirect=True)
def test_the_page_follows_the_readers_choice_of_light_and_dark(site, tmp_path):
    papers = []
    for scheme in ("preferredColorScheme=0", "preferredColorScheme=1"):
        said = visit(site, tmp_path / scheme, f"--blink-settings={scheme}")
        papers.append(said["paper"])
    assert papers == ["rgb(20, 23, 27)", "rgb(252, 252, 251)"]
