"""Images that tasks begin from: which of them the system here can stand in for."""

from __future__ import annotations

import re

_PLAIN = frozenset({"python", "debian", "ubuntu", "buildpack-deps", "alpine"})
"""Systems without much more than a shell and perhaps Python."""

_PYTHON_OF_SYSTEM = {
    ("ubuntu", "24.04"): "3.12",
    ("ubuntu", "noble"): "3.12",
    ("ubuntu", "22.04"): "3.10",
    ("ubuntu", "jammy"): "3.10",
    ("ubuntu", "20.04"): "3.8",
    ("debian", "13"): "3.13",
    ("debian", "trixie"): "3.13",
    ("debian", "12"): "3.11",
    ("debian", "bookworm"): "3.11",
    ("debian", "11"): "3.9",
    ("debian", "bullseye"): "3.9",
}
"""What `apt-get install python3` gives."""

_PYTHON_NAME = re.compile(r"python-(\d)-(\d+)")
_PYTHON_TAG = re.compile(r"(?:python)?(\d\.\d+)")


def python_version(image: str) -> str | None:
    """The version of Python that an image is known to have, or that its packages are for."""
    name, tag = _parts(image)
    of_system = _PYTHON_OF_SYSTEM.get((name, tag.partition("-")[0]))
    if of_system is not None:
        return of_system
    if name == "python" or (name == "uv" and tag.startswith("python")):
        match = _PYTHON_TAG.match(tag)
        return None if match is None else match[1]
    # Terminal-Bench's `python-3-13`.
    match = _PYTHON_NAME.fullmatch(name)
    return None if match is None else f"{match[1]}.{match[2]}"


def _is_base(image: str, name: str, tag: str) -> bool:
    if name in _PLAIN or (name == "uv" and tag.startswith(("python", "debian", "bookworm"))):
        return True
    # What Terminal-Bench's tasks begin from: such a system, with a terminal and its recorder.
    return "/t-bench/" in image.lower() and name.startswith(("ubuntu-", "python-", "debian-"))


def image_problem(image: str) -> str | None:
    """What an image has that the system here has not, or None if it can stand in for it."""
    name, tag = _parts(image)
    if _is_base(image, name, tag):
        return None
    return f"image {image!r}: only images of Python, Debian and Ubuntu are stood in for"


def _parts(image: str) -> tuple[str, str]:
    """The last part of an image's name, and its tag."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return name.lower(), tag.lower()
