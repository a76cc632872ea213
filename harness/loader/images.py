"""Images that tasks begin from: which of them the system here can stand in for."""

from __future__ import annotations

import re

_PLAIN = frozenset({"python", "debian", "ubuntu", "buildpack-deps", "alpine"})
"""Systems without much more than a shell and perhaps Python."""

_PYTHON_TAG = re.compile(r"(?:python)?(\d\.\d+)")


def python_version(image: str) -> str | None:
    """The version of Python that an image is known to have."""
    name, tag = _parts(image)
    if name == "python" or (name == "uv" and tag.startswith("python")):
        match = _PYTHON_TAG.match(tag)
        return None if match is None else match[1]
    return None


def image_problem(image: str) -> str | None:
    """What an image has that the system here has not, or None if it can stand in for it."""
    name, tag = _parts(image)
    if name in _PLAIN or (name == "uv" and tag.startswith(("python", "debian", "bookworm"))):
        return None
    return f"image {image!r}: only images of Python, Debian and Ubuntu are stood in for"


def _parts(image: str) -> tuple[str, str]:
    """The last part of an image's name, and its tag."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return name.lower(), tag.lower()
