"""`docker-compose.yaml` beside a Dockerfile: often only variables for the one machine there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.loader.reading import read_text

_MAIN = "main"
"""What Harbor calls the service that is the task's machine."""
OTHERS = "services in containers of their own"
"""What is needed where there are services beside it, or it cannot be told."""
_LONGEST = 65_536
"""Characters: reading YAML is slow."""
_JUDGED = frozenset({"build", "command", "entrypoint", "environment"})
"""Keys of the service that are not simply listed."""
_OF_HARBOR = re.compile(
    r"\$\{?(CONTEXT_DIR|CPUS|MEMORY|NETWORK_MODE|TEST_DIR|(MAIN|PREBUILT)_IMAGE_NAME"
    r"|(HOST|ENV)_(VERIFIER|AGENT|ARTIFACTS)_LOGS_PATH|(HOST|ENV)_ARTIFACTS_PATH)\b"
)
_OWN_FOLDER = re.compile(r"(\.|\$CONTEXT_DIR|\$\{CONTEXT_DIR(:?-[^{}]*)?\})/?")
_IDLE = re.compile(r"(exec )?((/usr)?/bin/)?(sleep inf(inity)?|tail -f /dev/null|bash|sh)|")
"""Commands that only keep a machine there."""
_SHELL = re.compile(r"((/usr)?/bin/)?(bash|sh) -l?c")
_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}]*))?\})")


@dataclass(slots=True)
class Compose:
    """What a file says about the task's machine."""

    need: str | None = None
    """What no machine here gives: the file describes more than one, or another."""
    env: dict[str, str] = field(default_factory=dict)
    """Its variables, as a task's settings would name them."""
    ignored: list[str] = field(default_factory=list)
    """What else is said of it."""


def read_compose(path: Path, image: str | None) -> Compose:
    """Read a file.

    Args:
        path: the file.
        image: the ready image that the task's settings name.

    Raises:
        BadInputError: it is no text.
    """
    text = read_text(path, purpose="the task's services")
    main = _only_service(text)
    if main is None:
        return Compose(need=OTHERS)
    if not _is_plain(main.get("build")):
        return Compose(need=f"{_MAIN}.build: more than the Dockerfile beside it")
    found = Compose()
    for name, value in _variables(main.get("environment")):
        if _OF_HARBOR.match(value):
            continue
        if (match := _NAMED.fullmatch(value)) is not None:
            host = match[1] or match[2]
            found.env[name] = f"${{{host}:-{match[3] or ''}}}"
            if match[3] is None:
                # As with Compose: most tasks name keys of agents that they do not use.
                found.ignored.append(f"{_MAIN}.environment: {name} is empty without --env {host}")
        elif "$" not in value:
            found.env[name] = value
        else:
            found.ignored.append(f"{_MAIN}.environment: {name}={value}")
    found.ignored += [f"{_MAIN}.{key}" for key in _not_done(main, image)]
    found.ignored.sort()
    return found


def _is_plain(build: object) -> bool:
    """Whether the image is that of the Dockerfile beside the file, as it is without `build`."""
    if build is None:
        return True
    table = build if isinstance(build, dict) else {"context": build}
    return (
        table.keys() <= {"context", "dockerfile"}
        and _OWN_FOLDER.fullmatch(str(table.get("context", "."))) is not None
        and table.get("dockerfile", "Dockerfile") in ("Dockerfile", "./Dockerfile")
    )


def _not_done(main: dict[str, Any], image: str | None) -> Iterator[str]:
    """The keys that ask for what a machine does not get here."""
    begun = {key: _words(main.get(key)) for key in ("entrypoint", "command")}
    if not _is_idle([*begun["entrypoint"], *begun["command"]]):
        yield from (key for key, words in begun.items() if not _is_idle(words))
    for key in main.keys() - _JUDGED:
        parts = main[key] if isinstance(main[key], list) else [main[key]]
        is_asked_for = key == "image" and main[key] in (None, image)
        if not is_asked_for and not all(_OF_HARBOR.search(str(part)) for part in parts):
            yield key


def _is_idle(words: list[str]) -> bool:
    if len(words) == 3 and _SHELL.fullmatch(" ".join(words[:2])):
        words = _words(words[2])
    return _IDLE.fullmatch(" ".join(words)) is not None


def _words(command: object) -> list[str]:
    if isinstance(command, list):
        return [str(word) for word in command]
    try:
        return shlex.split("" if command is None else str(command))
    except ValueError:
        return [str(command)]


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
    return main


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
