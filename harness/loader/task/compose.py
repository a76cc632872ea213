"""`docker-compose.yaml` beside a Dockerfile: often only variables for the one machine there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.loader.reading import read_text

_MAIN = "main"
"""What Harbor calls the service that is the task's machine."""
_LONGEST = 65_536
"""Characters: reading YAML is slow."""
_DONE = frozenset({"build", "command", "entrypoint", "environment", "image"})
"""Keys of the service that change nothing here: Harbor's own file sets most of them, too."""
_OF_HARBOR = re.compile(
    r"\$\{?(CONTEXT_DIR|CPUS|MEMORY|NETWORK_MODE|TEST_DIR|MAIN_IMAGE_NAME"
    r"|(HOST|ENV)_(VERIFIER|AGENT|ARTIFACTS)_LOGS_PATH|(HOST|ENV)_ARTIFACTS_PATH)\b"
)
_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}]*))?\})")


@dataclass(slots=True)
class Compose:
    """What a file says about the task's machine."""

    others: bool = False
    """Whether there are services beside it, or it cannot be told."""
    env: dict[str, str] = field(default_factory=dict)
    """Its variables, as a task's settings would name them."""
    ignored: list[str] = field(default_factory=list)
    """What else is said of it."""


def read_compose(path: Path) -> Compose:
    """Read a file.

    Raises:
        BadInputError: it is no text.
    """
    text = read_text(path, purpose="the task's services")
    main = _only_service(text)
    if main is None:
        return Compose(others=True)
    found = Compose()
    for name, value in _variables(main.get("environment")):
        if (match := _NAMED.fullmatch(value)) is not None and not _OF_HARBOR.match(value):
            # What is not set is empty to Compose, and no reason not to run.
            found.env[name] = f"${{{match[1] or match[2]}:-{match[3] or ''}}}"
        elif "$" not in value:
            found.env[name] = value
        elif not _OF_HARBOR.match(value):
            found.ignored.append(f"{_MAIN}.environment: {name}={value}")
    for key in main.keys() - _DONE:
        parts = main[key] if isinstance(main[key], list) else [main[key]]
        if not all(_OF_HARBOR.search(str(part)) for part in parts):
            found.ignored.append(f"{_MAIN}.{key}")
    found.ignored.sort()
    return found


def _only_service(text: str) -> dict[str, Any] | None:
    if len(text) > _LONGEST:
        return None
    try:
        # A small text with aliases may stand for a huge table.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            return None
        table = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    services = table.get("services") if isinstance(table, dict) else None
    if not isinstance(services, dict) or list(services) != [_MAIN]:
        return None
    main = services[_MAIN] or {}
    if not isinstance(main, dict) or not all(isinstance(key, str) for key in main):
        return None
    build = main.get("build") or {}
    dockerfile = build.get("dockerfile", "Dockerfile") if isinstance(build, dict) else "Dockerfile"
    return main if dockerfile == "Dockerfile" else None


def _variables(listed: object) -> Iterator[tuple[str, str]]:
    if isinstance(listed, dict):
        for name, value in listed.items():
            yield str(name), f"${{{name}}}" if value is None else _text(value)
    elif isinstance(listed, list):
        for word in listed:
            name, equals, value = str(word).partition("=")
            yield name, value if equals else f"${{{name}}}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
