"""Where pip finds packages on this host, handed on to a pip that runs in a sandbox."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from harness.values import Mount

# What says where packages come from. Another setting (`target`, `user`, `cache-dir`, …) is about
# the host's own environments.
_LOCAL = ("cert", "client-cert", "extra-index-url", "find-links", "index-url")
_KEYS = (*_LOCAL, "default-timeout", "no-index", "proxy", "retries", "timeout", "trusted-host")
_CERTIFICATES = ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE")
_PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")

# An index in a folder points to packages beside it; more of the folder above is not shown.
_BESIDE_AN_INDEX = ("files", "packages")


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Package indexes, and the way to them; may hold credentials, so it is never written down."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that pip reads."""
    mounts: tuple[Mount, ...] = ()
    """Files and folders of this host that the variables name."""


def index_settings(environ: Mapping[str, str]) -> IndexSettings:
    """Settings that pip has on this host.

    Args:
        environ: The host's variables: their settings come before those of files.
    """
    settings: dict[str, str] = {}
    for path in _files(environ):
        settings |= _read(path)
    for key in _KEYS:
        value = environ.get(_variable(key))
        if value is not None:
            settings[key] = value

    env = {_variable(key): value for key, value in settings.items()}
    names = (*_CERTIFICATES, *_PROXIES, *(name.upper() for name in _PROXIES))
    env |= {name: environ[name] for name in names if name in environ}

    places = {place for key in _LOCAL for place in _places(settings.get(key, ""))}
    places |= {Path(env[name]) for name in _CERTIFICATES if name in env}
    mounts = (Mount(place, str(place)) for place in sorted(places) if place.exists())
    return IndexSettings(env, tuple(mounts))


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files pip reads, in its order."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":"):
        yield Path(folder, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    home = environ.get("HOME")
    if home:
        yield Path(home, ".pip", "pip.conf")
        yield Path(environ.get("XDG_CONFIG_HOME") or Path(home, ".config"), "pip", "pip.conf")
    yield Path(sys.prefix, "pip.conf")
    if named:
        yield Path(named)


def _read(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        # What is wrong with a file of the host's pip is for that pip to tell.
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}
    settings: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            named = {key.replace("_", "-"): value for key, value in parser.items(section)}
            settings |= {key: value for key, value in named.items() if key in _KEYS}
    return settings


def _variable(key: str) -> str:
    return f"PIP_{key.upper().replace('-', '_')}"


def _places(value: str) -> Iterator[Path]:
    for word in value.split():
        path = url2pathname(urlsplit(word).path) if word.startswith("file://") else word
        if not path.startswith("/") or ".." in Path(path).parts or Path(path) == Path("/"):
            continue
        yield Path(path)
        if Path(path).name == "simple":
            yield from (Path(path).parent / name for name in _BESIDE_AN_INDEX)
