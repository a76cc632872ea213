"""`pip install` that says what is there already, and fails for what is not.

Everything else is left to pip itself, which finds out by itself that there is no network.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

PIP = "/opt/pip/pip"
STOOD_IN_FOR = ("pip", "uv")
WITH_VALUE = re.compile(
    r"-[cfipt]|--(index-url|extra-index-url|find-links|constraint|python|target|prefix|root"
    r"|index|default-index|index-strategy|link-mode|group|torch-backend|timeout|retries"
    r"|with|trusted-host|cache-dir|only-binary|no-binary|upgrade-strategy|cert|proxy|log|src)"
)


def main(words: list[str]) -> int:
    """Install nothing, and tell whether it was to be."""
    command = next((word for word in words if not word.startswith("-")), None)
    if command != "install":
        leave_to_pip(words)
    wanted = list(requirements(words[words.index("install") + 1 :]))
    if not wanted or any(is_local(text) for text in wanted):
        leave_to_pip(words)
    quiet = any(re.fullmatch(r"-q+|--quiet", word) for word in words)
    for text in wanted:
        found = what_is_there(text)
        if found is None:
            print(
                f"pip (stand-in): there is no network, and this was not prepared: {text}\n"
                f"ERROR: No matching distribution found for {text}",
                file=sys.stderr,
            )
            return 1
        if not quiet:
            print(f"Requirement already satisfied: {text} {found}".rstrip())
    return 0


def leave_to_pip(words: list[str]) -> None:
    """Become the real one."""
    os.execv(sys.executable, [sys.executable, PIP, *words])


def requirements(words: list[str]) -> Iterator[str]:
    """What is to be installed, in order, that of files as well."""
    rest = iter(words)
    for word in rest:
        option, _, value = word.partition("=")
        if option in ("-r", "--requirement", "--requirements"):
            yield from in_file(Path(value or next(rest, "")))
        elif option in ("-e", "--editable"):
            yield value or next(rest, "")
        elif WITH_VALUE.fullmatch(word):
            next(rest, None)
        elif not word.startswith("-"):
            yield word


def in_file(path: Path) -> Iterator[str]:
    """The requirements of a file, and of those it names."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    for line in lines:
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        nested = re.fullmatch(r"(?:-r|--requirement)[ =]*(.+)", text)
        if nested:
            yield from in_file(path.parent / nested[1])
        elif text and not text.startswith("-"):
            # Hashes and such come after it.
            yield re.split(r"\s+--", text)[0]


def is_local(text: str) -> bool:
    """Whether it names a file or folder."""
    return text.startswith(("/", ".", "file:")) or text.endswith(".whl")


def what_is_there(text: str) -> str | None:
    """Where a requirement is met, and by what; None where it is not."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return installed_from(text)
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return ""
    if canonicalize_name(requirement.name) in STOOD_IN_FOR:
        return ""
    try:
        found = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        return None
    is_met = requirement.specifier.contains(found.version, prereleases=True)
    if not is_met and not was_taken(requirement, found.version):
        return None
    if any(what_is_there(text) is None for text in of_extras(found, requirement.extras)):
        return None
    return f"in {found.locate_file('')} ({found.version})"


def was_taken(requirement: Requirement, version: str) -> bool:
    """Whether this version was installed since there is nothing else for this Python."""
    path = Path(sys.prefix, "taken.json")
    taken = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return any(
        Requirement(asked).name == requirement.name
        and Requirement(asked).specifier == requirement.specifier
        and Requirement(found).specifier.contains(version, prereleases=True)
        for asked, found in taken.items()
    )


def of_extras(found: metadata.Distribution, extras: set[str]) -> Iterator[str]:
    """What a package needs for its extras alone."""
    for text in found.requires or ():
        needed = Requirement(text)
        marker, needed.marker = needed.marker, None
        if marker is None or marker.evaluate({"extra": ""}):
            continue
        if any(marker.evaluate({"extra": extra}) for extra in extras):
            yield str(needed)


def installed_from(url: str) -> str | None:
    """What was installed from a URL, for instance of a repository."""
    wanted = re.sub(r"^\w+\+|#.*", "", url)
    for found in metadata.distributions():
        source = json.loads(found.read_text("direct_url.json") or "{}")
        revision = source.get("vcs_info", {}).get("requested_revision")
        if wanted == source.get("url", "") + (f"@{revision}" if revision else ""):
            return f"({found.version})"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
