"""Commands that name a version of Python: which one packages are then installed for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_VERSION = re.compile(r"[^0-9]*([0-9]+\.[0-9]+)")
_VERSIONED = re.compile(r"(?:python|pip)([0-9]+\.[0-9]+)")
_MODULES = frozenset({"pip", "venv", "virtualenv"})
_PYTHON_OPTION = re.compile(r"(?:--python=|-p=?)(.+)")


def version_in(text: str) -> str | None:
    """The two numbers of `3.12`, `3.12.1`, `python3.12` or `cpython-3.12`; None without any.

    The stand-in for `uvx` reads them in the same way.
    """
    match = _VERSION.match(text)
    return None if match is None else match[1]


def asked_python(words: Sequence[str | None]) -> str | None:
    """The version that a command makes an environment of, or that it installs packages for.

    Args:
        words: with quotes and variables resolved; None for what cannot be known.
    """
    if not words or words[0] is None:
        return None
    name, rest = PurePosixPath(words[0]).name, words[1:]
    module = rest[1] if rest[:1] == ["-m"] and len(rest) > 1 else None
    if "virtualenv" in (name, module) or (name == "uv" and rest[:1] in (["venv"], ["init"])):
        option = _option(rest)
        if option is not None:
            return version_in(option)
    match = _VERSIONED.fullmatch(name)
    installs = module in _MODULES if name.startswith("python") else "install" in rest
    return match[1] if match is not None and installs else None


def _option(words: Sequence[str | None]) -> str | None:
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word in ("-p", "--python"):
            return following
        match = _PYTHON_OPTION.fullmatch(word or "")
        if match is not None:
            return match[1]
    return None
