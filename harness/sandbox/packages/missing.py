"""What pip did not find, and what comes closest to it: many pins are older than the Python here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NOT_FOUND = re.compile(
    r"Could not find a version that satisfies the requirement (?P<text>\S+)[^\n]*?"
    r" \(from versions: (?P<versions>[^)\n]*)\)"
)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LOCAL = re.compile(r"(\+|%2B).*", re.IGNORECASE)
_PIN = re.compile(r"==\s*(\d+(?:\.\d+)*(?:\+[A-Za-z0-9.]+)?)(?=\s*(?:[,;]|$))")
"""A version, and what comes after a plus: who built it, as `2.2.0+cpu` has it."""
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_WHEEL = re.compile(r"([A-Za-z0-9._]+)-([^-\s]+)-[^\s/]*\.whl")


@dataclass(frozen=True, slots=True)
class Missing:
    """A requirement for which there is no file."""

    text: str
    """As pip writes it, without spaces."""
    versions: tuple[str, ...]
    """Those that there are files of; no candidates for a release."""

    @property
    def name(self) -> str:
        """Of the package, in the form that all its spellings share."""
        return plain_name(self.text)

    @property
    def version(self) -> str | None:
        """The one that is asked for, if it is one."""
        match = _PIN.search(self.text)
        return None if match is None else match[1]

    @property
    def plain_version(self) -> str:
        """The same without zeros at its end, as `1.4` and `1.4.0` are one version."""
        return ".".join(str(number) for number in _numbers(self.version or ""))

    def closest(self) -> str | None:
        """The first version after the one that is asked for, else the last before it."""
        if self.version is None or not self.versions:
            return None
        wanted = _numbers(self.version)
        # The same version by somebody else is closer than any other.
        same = [one for one in self.versions if "+" in self.version and _numbers(one) == wanted]
        later = same or [one for one in self.versions if _numbers(one) > wanted]
        return min(later, key=_numbers) if later else max(self.versions, key=_numbers)


def read_missing(output: str) -> Missing | None:
    """What pip says that it did not find; None if it says nothing of the kind."""
    match = _NOT_FOUND.search(output)
    if match is None or _NAME.match(match["text"]) is None:
        return None
    versions = dict.fromkeys(_public(one.strip()) for one in match["versions"].split(","))
    return Missing(match["text"], tuple(one for one in versions if _VERSION.fullmatch(one)))


def has_wheel_of(missing: Missing, output: str) -> bool:
    """Whether names of wheels of that version, for whatever Python, are among others."""
    wanted = _numbers(missing.version or "")
    return any(
        plain_name(name) == missing.name
        and _VERSION.fullmatch(_public(version))
        and _numbers(version) == wanted
        for name, version in _WHEEL.findall(output)
    )


def instead_of(words: Iterable[str], missing: Missing, version: str) -> dict[str, str]:
    """The words that ask for what is missing, each with what asks for this version."""
    found = {}
    for word in words:
        match = _PIN.search(word)
        if match is not None and match[1] == missing.version and plain_name(word) == missing.name:
            found[word] = f"{word[: match.start(1)]}{version}{word[match.end(1) :]}"
    return found


def plain_name(requirement: str) -> str:
    """The name of a package without extras and versions, as indexes write it; may be empty."""
    match = _NAME.match(requirement)
    return "" if match is None else re.sub(r"[-_.]+", "-", match[0]).lower()


def _public(version: str) -> str:
    """A version whoever has built it; `==` is content with each of them then."""
    return _LOCAL.sub("", version)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(one) for one in _public(version).split(".") if one.isdigit()]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
