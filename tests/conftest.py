"""What every test needs: an environment without keys, no network, repeatable examples."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import hypothesis
import pytest

pytest_plugins = ("pytester",)

hypothesis.settings.register_profile("harness", deadline=None, derandomize=True)
hypothesis.settings.load_profile("harness")

_FOREIGN_PREFIXES = ("ANTHROPIC_", "OPENAI_")
_FOREIGN_SUFFIXES = ("_API_KEY", "_AUTH_TOKEN", "_PROXY")
_FOREIGN_NAMES = ("CI", "NO_COLOR", "FORCE_COLOR")


def _is_foreign(name: str) -> bool:
    upper = name.upper()
    return (
        upper in _FOREIGN_NAMES
        or upper.startswith(_FOREIGN_PREFIXES)
        or upper.endswith(_FOREIGN_SUFFIXES)
    )


@pytest.fixture(scope="session", autouse=True)
def _environment_of_nobody() -> Iterator[None]:
    """The same environment on every machine: no keys, no vendor settings, no CI switch."""
    with pytest.MonkeyPatch.context() as patch:
        for name in filter(_is_foreign, list(os.environ)):
            patch.delenv(name)
        yield


def _loopback_only(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    host = address[0] if isinstance(address, tuple) else "localhost"
    if host not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"a test wants to connect to {address!r}; tests stay on this machine")


sys.addaudithook(_loopback_only)
