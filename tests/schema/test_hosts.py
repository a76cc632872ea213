from __future__ import annotations

import pytest

from harness.schema.hosts import host_name, is_within


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.Com.", "example.com"),
        ("example.com:8080", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("straße.example", "xn--strae-oqa.example"),
        ("evil。com", "evil.com"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:80", "::1"),
        ("0:0::1", "::1"),
        ("_dmarc.example.com", "_dmarc.example.com"),
    ],
)
def test_a_host_has_one_spelling(text: str, name: str):
    assert host_name(text) == name


@pytest.mark.parametrize(
    "text",
    ["", ".", "a..b", "https://example.com", "good.com@evil.com", "evil.com/good.com", "a b",
     "evil.com\\good.com", "evil.com#good.com", "*.example.com", "example.com:", "[::1",
     "\ud800.com", "x:y:z", "example.com\n"],
)  # fmt: skip
def test_what_is_no_host_has_no_name(text: str):
    assert host_name(text) is None
    assert not is_within(text, [text, "good.com", "example.com"])


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("example.com", True),
        ("api.example.com", True),
        ("a.b.EXAMPLE.com.", True),
        ("evilexample.com", False),
        ("example.com.evil.org", False),
        ("com", False),
        ("localhost", False),
    ],
)
def test_a_domain_covers_its_subdomains_and_no_other(host: str, inside: bool):
    assert is_within(host, ["other.org", "Example.com"]) is inside


def test_no_domain_covers_nothing():
    assert not is_within("example.com", [])
