"""Fetching pages over real HTTP from a server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.errors import ConfigurationError
from harness.schema.record import JsonObject
from harness.tools.page_text import page_text
from harness.tools.registry import Registry
from harness.tools.web_fetch import BYTES_LIMIT, TEXT_LIMIT, WebFetch
from harness.values import Effect, ToolInvocation, ToolOutcome

PAGE = """<!doctype html><html><head><title>The  title</title><style>p {}</style>
<script>if (a < b) { "</p>" }</script></head><body><h1>Caf&eacute;</h1>
<p>One <b>bold</b>
word.<br>Next<ul><li>item</li></ul><noscript>no</noscript></body></html>"""

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """A web server whose pages are functions."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                site.headers.append({k.lower(): v for k, v in self.headers.items()})
                site.pages[self.path](self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server.server_port}{path}"


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


def sends(body: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"content_type": "text/plain", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def fetch(
    url: str, domains: tuple[str, ...] = ("127.0.0.1",), *, timeout_s: float = 60
) -> ToolOutcome:
    registry = Registry([WebFetch(domains)])
    return registry.invoke(ToolInvocation("call-1", "web_fetch", {"url": url}, 0, timeout_s))


def test_a_page_is_shown_as_text(site: Site):
    site.pages["/"] = sends(PAGE.encode(), content_type="text/html; charset=utf-8")
    outcome = fetch(site.url("/"))
    assert (outcome.status, outcome.content) == (
        "ok",
        "The title\nCafé\nOne bold word.\nNext\nitem",
    )
    assert site.headers[0]["user-agent"].startswith("loop-harness")
    assert "authorization" not in site.headers[0]


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"<a/>", "application/atom+xml", "<a/>"),
        ("é".encode("latin-1"), "text/plain; charset=latin-1", "é"),
        (b"a\xff", "text/plain", "a�"),
        (b"plain", "text/plain; charset=martian", "plain"),
        (b"", "text/plain", "[empty page]"),
    ],
)
def test_other_text_is_shown_as_it_is(site: Site, body: bytes, content_type: str, text: str):
    site.pages["/"] = sends(body, content_type=content_type)
    assert fetch(site.url("/")).content == text


@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream", ""])
def test_what_is_not_text_is_refused(site: Site, content_type: str):
    site.pages["/"] = sends(b"\x89PNG", content_type=content_type)
    outcome = fetch(site.url("/"))
    assert outcome.status == "failed"
    assert (
        outcome.content == f"{site.url('/')}: not text but {content_type or 'of no content type'}"
    )


def test_a_compressed_body_is_refused(site: Site):
    site.pages["/"] = sends(b"\x1f\x8b", content_encoding="gzip")
    assert "compressed" in fetch(site.url("/")).content
    assert site.headers[0]["accept-encoding"] == "identity"


def test_a_huge_body_is_cut_and_not_read_to_its_end(site: Site):
    gave_up = threading.Event()

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 100_000)
        except OSError:
            gave_up.set()

    site.pages["/"] = endless
    outcome = fetch(site.url("/"))
    note = "\n[cut: only the beginning of the page is shown]"
    assert (outcome.status, outcome.content) == ("ok", "x" * TEXT_LIMIT + note)
    assert gave_up.wait(timeout=60)


def test_html_that_is_longer_than_what_is_read_is_marked_as_cut(site: Site):
    page = b"<p>short</p><script>" + b"x" * BYTES_LIMIT
    site.pages["/"] = sends(page, content_type="text/html")
    assert fetch(site.url("/")).content.startswith("short\n[cut:")


def test_redirects_within_the_list_are_followed(site: Site):
    site.pages["/a"] = sends(b"", 302, location="/b")
    site.pages["/b"] = sends(b"", 307, location=site.url("/c", "LOCALHOST"))
    site.pages["/c"] = sends(b"there")
    assert fetch(site.url("/a"), ("127.0.0.1", "localhost")).content == "there"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://localhost:{port}/secret", "the host 'localhost' is not allowed"),
        ("//localhost:{port}/secret", "the host 'localhost' is not allowed"),
        ("http://127.0.0.1@localhost:{port}/secret", "user name"),
        ("http://me:pw@127.0.0.1:{port}/secret", "user name"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("http://a:b/", "no URL"),
    ],
)
def test_a_redirect_off_the_list_is_refused_at_any_hop(site: Site, target: str, why: str):
    site.pages["/a"] = sends(b"", 302, location="/b")
    site.pages["/b"] = sends(b"", 302, location=target.format(port=site.server.server_port))
    site.pages["/secret"] = sends(b"secret")
    outcome = fetch(site.url("/a"))
    assert outcome.status == "failed"
    assert why in outcome.content
    assert site.asked == ["/a", "/b"]


def test_redirects_in_a_circle_come_to_an_end(site: Site):
    site.pages["/"] = sends(b"", 301, location="/")
    outcome = fetch(site.url("/"))
    assert (outcome.status, outcome.content) == (
        "failed",
        f"{site.url('/')}: more than 5 redirects",
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://localhost:{port}/", "the host 'localhost' is not allowed; allowed are: 127.0.0.1"),
        ("http://me@127.0.0.1:{port}/", "user name"),
        ("ftp://127.0.0.1/", "not an http or https URL"),
        ("127.0.0.1", "not an http or https URL"),
        ("http://", "not an http or https URL"),
        ("http://[::", "not a URL"),
        ("http://127.0.0.1.evil.com/", "not allowed"),
    ],
)
def test_a_url_off_the_list_is_not_asked_for(site: Site, url: str, why: str):
    outcome = fetch(url.format(port=site.server.server_port))
    assert outcome.status == "failed"
    assert why in outcome.content
    assert site.asked == []


def test_an_empty_list_allows_nothing(site: Site):
    assert "allowed are: none" in fetch(site.url("/"), ()).content
    assert site.asked == []


def test_an_error_of_the_server_is_a_failed_result(site: Site):
    site.pages["/"] = sends(b"gone", 404)
    site.pages["/to-nowhere"] = sends(b"", 304)
    assert fetch(site.url("/")).content == f"{site.url('/')}: HTTP 404 Not Found"
    assert fetch(site.url("/to-nowhere")).status == "failed"
    dead = Site()
    dead.server.shutdown()
    dead.server.server_close()
    outcome = fetch(dead.url("/"))
    assert outcome.status == "failed"
    assert outcome.content.startswith(dead.url("/"))


def test_a_server_that_is_too_slow_times_out(site: Site):
    done = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        while not done.wait(0.02):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    site.pages["/"] = drip
    tool = WebFetch(["127.0.0.1"])
    outcome = tool.call({"url": site.url("/")}, 0.2)
    left = ToolInvocation("1", "web_fetch", {"url": site.url("/")}, 0, timeout_s=60, limit_s=0.2)
    cut = Registry([tool]).invoke(left)
    done.set()
    assert (outcome.status, outcome.content) == ("timed_out", "timed out after 0.2 s")
    # What was left differs from run to run.
    assert cut.content == "timed out: the run's time is used up"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.com:8080/a", "example.com"),
        ("https://good.com@evil.com/", "evil.com"),
        ("https://straße.example", "xn--strae-oqa.example"),
        ("http://[::", "http://[::"),
    ],
)
def test_it_says_which_host_it_reaches(url: str, host: str):
    arguments: JsonObject = {"url": url}
    assert WebFetch([]).effects(arguments) == (Effect("network", host),)


def test_a_domain_that_can_never_match_is_refused():
    with pytest.raises(ConfigurationError, match=r"'https://a\.b'"):
        WebFetch(["https://a.b"])


def test_broken_html_is_read_as_far_as_it_goes():
    assert page_text("a<p>b</i></p></script><svg><g>x</svg>c <br/>d") == "a\nb\nc\nd"
    assert page_text("a<p>b<![x y") == "a\nb"
    assert page_text("<script>x") == ""
