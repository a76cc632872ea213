"""The page in a real browser: fits a phone, runs nothing, asks nobody for anything."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.report.html import render
from tests.report.hostile import ELSEWHERE, hostile_run
from tests.report.page import parse
from tests.report.sample_run import sample_run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")

# Opens the report in a frame as wide as a phone, visits every page in it and says what it found.
VISIT = """<!DOCTYPE html><body><iframe style="width:400px;height:800px;border:0"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  const title = page.title, found = [];
  const anchors = ["overview", ...[...page.querySelectorAll(".page")].map(one => one.id)];
  for (const anchor of anchors) {
    frame.contentWindow.location.hash = anchor;
    const shown = [...page.querySelectorAll(".page, #overview")].filter(one => one.offsetHeight);
    const wide = [...page.querySelectorAll("*")].filter(one => {
      const right = one.getBoundingClientRect().right;
      return right > 400.5 && !one.closest(".scroll") && !one.closest(".quiet");
    });
    found.push({anchor, shown: shown.map(one => one.id), width: root.scrollWidth,
      wide: wide.map(one => one.outerHTML.slice(0, 200))});
  }
  const said = {found, title, after: page.title, scripts: page.querySelectorAll("script").length,
    images: page.images.length, frames: frame.contentWindow.length,
    paper: frame.contentWindow.getComputedStyle(page.body).backgroundColor};
  document.body.textContent = JSON.stringify(said);
};
frame.src = "report.html";
</script></body>"""


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
    sample = hostile_run() if request.param == "hostile" else sample_run(repeats=1)
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


@pytest.mark.parametrize("site", ["ordinary", "hostile"], indirect=True)
def test_every_page_fits_400_pixels_alone_and_nothing_runs(site, tmp_path):
    said = visit(site, tmp_path)
    pages = said.pop("found")
    assert len(pages) >= 5
    assert [page for page in pages if page["wide"] or page["width"] > 400] == []
    assert [page["shown"] for page in pages] == [[page["anchor"]] for page in pages]
    assert said["title"] == said["after"] != "owned"
    assert (said["scripts"], said["images"], said["frames"]) == (0, 0, 0)


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
