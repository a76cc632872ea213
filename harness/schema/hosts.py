"""Names of hosts, and whether a list of domains covers one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

import idna

_PORT = re.compile(r":[0-9]{1,5}\Z")
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def host_name(text: str) -> str | None:
    """The host in its one spelling, without port: lower case, ASCII, no dot at the end.

    None when it is neither a host's name nor an IP address.
    """
    host = text if text.count(":") > 1 and "]" not in text else _PORT.sub("", text)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if ":" in host:
        return _ip_v6(host)
    try:
        name = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    name = name.lower().removesuffix(".")
    return name if _NAME.fullmatch(name) else None


def is_within(host: str, domains: Iterable[str]) -> bool:
    """Whether a host is one of these domains, or below one."""
    name = host_name(host)
    if name is None:
        return False
    listed = {host_name(domain) for domain in domains}
    parts = name.split(".")
    return any(".".join(parts[start:]) in listed for start in range(len(parts)))


def _ip_v6(text: str) -> str | None:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return None
