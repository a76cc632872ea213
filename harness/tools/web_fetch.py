"""A tool that reads web pages. It is for the Python API alone: trials have no network."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import httpx2

from harness.errors import ConfigurationError
from harness.schema.hosts import host_name, is_within
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject
from harness.tools.page_text import page_text
from harness.tools.results import timed_out
from harness.values import Effect, ToolOutcome

BYTES_LIMIT = 1_000_000
"""Bytes of a body that are read."""

TEXT_LIMIT = 20_000
"""Characters of a page that are shown."""

_MAX_REDIRECTS = 5
_HEADERS = {
    "User-Agent": "loop-harness (web_fetch)",
    "Accept": "text/*, application/json, application/xml;q=0.9, application/xhtml+xml",
    # Else a small body could unpack to a huge one.
    "Accept-Encoding": "identity",
}
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/javascript", "application/yaml")


class _RefusedError(Exception):
    """What cannot be fetched; the text is for the agent."""


class _TooSlowError(Exception):
    """The time is up."""


class WebFetch:
    """Shows the text of a web page from a list of domains.

    It is not among the built-in tools of a task, since a trial has no network: add it to the tools
    of a loop that you build yourself.
    """

    spec = ToolSpec(
        name="web_fetch",
        description="Fetch a web page and show its text.",
        parameters={
            "type": "object",
            "properties": {"url": {"type": "string", "description": "An http or https URL."}},
            "required": ["url"],
        },
    )
    sequential = False

    def __init__(self, domains: Collection[str]) -> None:
        """Allow some domains, their subdomains included.

        Args:
            domains: What may be reached, also by redirects; empty is nothing.

        Raises:
            ConfigurationError: one is no host's name.
        """
        for domain in domains:
            if host_name(domain) is None:
                raise ConfigurationError(
                    f"web_fetch: {domain!r} is no domain: give a host's name, such as example.com"
                )
        self._domains = tuple(domains)
        listed: list[Json] = [*sorted(self._domains)]
        self.settings: JsonObject = {"domains": listed, "limit": TEXT_LIMIT, "bytes": BYTES_LIMIT}

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It reaches the URL's host; redirects lead to its own domains only."""
        text = str(arguments["url"])
        try:
            host = httpx2.URL(text).raw_host.decode("ascii")
        except (httpx2.InvalidURL, UnicodeError):
            host = text
        return (Effect("network", host),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """The page's text, or why there is none."""
        url = str(arguments["url"])
        try:
            return ToolOutcome(content=self._fetch(url, time.monotonic() + timeout_s))
        except _RefusedError as error:
            return ToolOutcome(content=str(error), status="failed")
        except (_TooSlowError, httpx2.TimeoutException):
            return ToolOutcome(content=timed_out(timeout_s), status="timed_out")
        except httpx2.HTTPError as error:
            return ToolOutcome(content=f"{url}: {error or type(error).__name__}", status="failed")

    def _fetch(self, text: str, deadline: float) -> str:
        url = self._allowed(text)
        # The environment's proxies and netrc passwords are not for an agent.
        with httpx2.Client(headers=_HEADERS, trust_env=False, follow_redirects=False) as client:
            for _ in range(_MAX_REDIRECTS + 1):
                with _opened(client, url, deadline) as response:
                    target = response.headers.get("location")
                    if not (response.is_redirect and target):
                        return _shown(response, deadline)
                url = self._allowed(_joined(url, target))
        raise _RefusedError(f"{text}: more than {_MAX_REDIRECTS} redirects")

    def _allowed(self, text: str) -> httpx2.URL:
        try:
            url = httpx2.URL(text)
            host = url.raw_host.decode("ascii")
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise _RefusedError(f"{text}: not a URL ({error})") from error
        if url.scheme not in ("http", "https") or not host:
            raise _RefusedError(f"{text}: not an http or https URL")
        if url.userinfo:
            raise _RefusedError("a URL with a user name or password is not allowed")
        if not is_within(host, self._domains):
            allowed = ", ".join(self._domains) or "none"
            raise _RefusedError(f"{text}: the host {host!r} is not allowed; allowed are: {allowed}")
        return url


@contextmanager
def _opened(client: httpx2.Client, url: httpx2.URL, deadline: float) -> Iterator[httpx2.Response]:
    with client.stream("GET", url, timeout=_left(deadline)) as response:
        yield response


def _joined(url: httpx2.URL, target: str) -> str:
    try:
        return str(url.join(target))
    except httpx2.InvalidURL as error:
        raise _RefusedError(f"{url}: redirects to what is no URL ({error})") from error


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise _TooSlowError
    return left


def _shown(response: httpx2.Response, deadline: float) -> str:
    where = f"{response.url}"
    if response.is_error or response.is_redirect:
        raise _RefusedError(f"{where}: HTTP {response.status_code} {response.reason_phrase}")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml"))):
        raise _RefusedError(f"{where}: not text but {kind or 'of no content type'}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise _RefusedError(f"{where}: sent compressed, though that was not asked for")
    data, cut = _body(response, deadline)
    text = _decoded(data, response.charset_encoding)
    if kind in _HTML:
        text = page_text(text)
    if cut or len(text) > TEXT_LIMIT:
        text = f"{text[:TEXT_LIMIT]}\n[cut: only the beginning of the page is shown]"
    return text or "[empty page]"


def _body(response: httpx2.Response, deadline: float) -> tuple[bytes, bool]:
    """What is read of the body, and whether there is more."""
    data = bytearray()
    for chunk in response.iter_raw():
        _left(deadline)
        data += chunk
        if len(data) > BYTES_LIMIT:
            return bytes(data[:BYTES_LIMIT]), True
    return bytes(data), False


def _decoded(data: bytes, charset: str | None) -> str:
    try:
        return data.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return data.decode(errors="replace")
