"""Commands that install Python packages: what they ask for.

Names are kept as they are written; whatever is not a package of an index is told apart, since only
a container engine could give it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.loader.dockerfile.pythons import version_in

Files = Callable[[str], Path | None]
"""The file here that a path on the task's machine stands for, if it is one of the task's."""

_PIP = re.compile(r"pip[0-9.]*")
_PYTHON = re.compile(r"python[0-9.]*")
_PREFIXES = frozenset({"sudo", "command", "exec", "env", "time", "nice"})
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LOCAL = re.compile(r"[.~].*|.*/.*|.*\.(whl|zip|tar\.gz|tgz)", re.IGNORECASE | re.DOTALL)
_FILE_BYTES = 1_000_000

_SHORT = {"-i": "--index-url", "-f": "--find-links", "-r": "--requirement", "-c": "--constraint"}
_SHORT |= {"-e": "--editable", "-w": "--with", "-p": "--python", "-t": "--target"}
_SHORT |= {"-C": "--config-settings"}
_INDEXES = ("--index-url", "--extra-index-url", "--index", "--default-index")
_KEPT_VALUES = ("--find-links", "--trusted-host", "--only-binary", "--no-binary")
_KEPT_FLAGS = ("--pre", "--prefer-binary", "--no-build-isolation")
_FILE_OPTIONS = ("--requirement", "--requirements", "--with-requirements")
_CANNOT = (
    *("--editable", "--constraint", "--constraints", "--override", "--overrides"),
    *("--with-editable", "--target", "--prefix"),
)
_DROPPED_VALUES = frozenset(
    {
        *("--python", "--timeout", "--default-timeout", "--retries", "--progress-bar", "--log"),
        *("--root-user-action", "--cache-dir", "--proxy", "--cert", "--exists-action", "--root"),
        *("--upgrade-strategy", "--src", "--report", "--config-settings", "--global-option"),
        *("--platform", "--abi", "--implementation", "--python-version", "--index-strategy"),
        *("--resolution", "--prerelease", "--link-mode", "--keyring-provider", "--color"),
        *("--torch-backend", "--exclude-newer", "--python-platform", "--directory", "--project"),
        *("--config-file", "--env-file", "--extra", "--group", "--package", "--optional"),
        *("--only-group", "--no-group", "--prompt"),
        *("--upgrade-package", "--reinstall-package", "--refresh-package", "--python-preference"),
    }
)
_NOT_NEEDED = frozenset({"pip"})


@dataclass(frozen=True, slots=True)
class Install:
    """What one command installs."""

    packages: tuple[str, ...] = ()
    """Requirements and options, in order."""
    tool: tuple[str, ...] = ()
    """Requirements of an environment of its own, sorted; `--python=3.12` for one of a version."""
    problems: tuple[str, ...] = ()
    """What of it cannot be had here."""
    missing: tuple[str, ...] = ()
    """Files of requirements that are not among the task's."""


def read_install(words: Sequence[str | None], files: Files) -> Install | None:
    """What a command installs; None if it is no such command.

    Args:
        words: with quotes and variables resolved; None for what cannot be known.
        files: for files of requirements.
    """
    words = _without_prefixes(words)
    if not words or words[0] is None:
        return None
    name, rest = PurePosixPath(words[0]).name, words[1:]
    if _PYTHON.fullmatch(name):
        while rest and rest[0] != "-m" and str(rest[0]).startswith("-"):
            rest = rest[1:]
        if len(rest) < 2 or rest[0] != "-m" or rest[1] not in ("pip", "uv"):
            return None
        name, rest = str(rest[1]), rest[2:]
    if _PIP.fullmatch(name):
        return _packages(_after(("install",), rest), files)
    if name == "pipx":
        return _packages(_after(("install",), rest), files)
    if name == "uvx":
        return _tool(rest, files, runs="tool")
    return _uv(rest, files) if name == "uv" else None


def _uv(words: Sequence[str | None], files: Files) -> Install | None:
    for sub in (("pip", "install"), ("tool", "install"), ("add",)):
        if (rest := _after(sub, words)) is not None:
            return _packages(rest, files)
    if (rest := _after(("tool", "run"), words)) is not None:
        return _tool(rest, files, runs="tool")
    rest = _after(("run",), words)
    return None if rest is None else _tool(rest, files, runs="command")


def _without_prefixes(words: Sequence[str | None]) -> Sequence[str | None]:
    at = 0
    while at < len(words):
        word = words[at]
        if word is None or not (word in _PREFIXES or _ASSIGNED.fullmatch(word)):
            break
        at += 1
        if word == "command" and at < len(words) and str(words[at]).lower() == "-v":
            return ()
        while word in _PREFIXES and at < len(words) and str(words[at]).startswith("-"):
            at += 1
    return words[at:]


def _after(names: Sequence[str], words: Sequence[str | None] | None) -> Sequence[str | None] | None:
    """What follows these words, options between them left out."""
    for name in names:
        while words and str(words[0]).startswith("-"):
            words = words[1:]
        if not words or words[0] != name:
            return None
        words = words[1:]
    return words


def _packages(words: Sequence[str | None] | None, files: Files) -> Install | None:
    if words is None:
        return None
    found = _Found(files)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word is None or not word.startswith("-"):
            found.requirement(word)
        else:
            found.option(*_option(word, rest))
    return Install(
        tuple(found.packages), problems=tuple(found.problems), missing=tuple(found.missing)
    )


def _option(word: str, rest: list[str | None]) -> tuple[str, str | None]:
    """An option in its long form, and its value, which may be the next word."""
    name, equals, value = word.partition("=")
    if not word.startswith("--") and len(word) > 2 and word[:2] in _SHORT:
        name, equals, value = word[:2], "=", word[2:].removeprefix("=")
    name = _SHORT.get(name, name)
    if equals:
        return name, value
    takes = (*_INDEXES, *_KEPT_VALUES, *_FILE_OPTIONS, *_CANNOT, "--with", "--from")
    if (name in takes or name in _DROPPED_VALUES) and rest:
        return name, rest.pop(0)
    return name, None


class _Found:
    """Gathers requirements and the options that matter for them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: set[Path] = set()
        self.packages: list[str] = []
        self.problems: list[str] = []
        self.missing: list[str] = []

    def requirements(self, listed: str | None) -> None:
        """Requirements with commas between them."""
        if listed is None or "[" in listed:
            self.requirement(listed)
            return
        # Commas are within versions, too; the stand-in for `uvx` takes them in the same way.
        for text in re.split(r",\s*(?=[A-Za-z0-9])", listed):
            self.requirement(text)

    def requirement(self, text: str | None) -> None:
        if text is None:
            self.problems.append("names a package only when it runs")
            return
        text = text.strip()
        if "://" not in text and _LOCAL.fullmatch(text):
            self.problems.append(f"{text}: installs files of the task's own")
        elif not _NAME.match(text):
            self.problems.append(f"{text}: no name of a package")
        elif text.lower() not in _NOT_NEEDED:
            self.packages.append(text)

    def option(self, name: str, value: str | None) -> None:
        if name in _KEPT_FLAGS:
            self.packages.append(name)
        elif name in _INDEXES and value:
            # All lines become one, and this index need not have what the others ask for.
            self.packages += ["--extra-index-url", value]
        elif name in _KEPT_VALUES and value and "://" not in value and name == "--find-links":
            self.problems.append(f"{name} {value}: a folder of the task's own")
        elif name in _KEPT_VALUES and value:
            self.packages += [name, value]
        elif name in _FILE_OPTIONS:
            self.file(value)
        elif name in _CANNOT:
            self.problems.append(f"{name} {value or ''}".strip())

    def file(self, path: str | None) -> None:
        found = None if path is None else self._files(path)
        if found is None or path is None:
            self.problems.append(f"-r {path or '…'}: not among the task's files")
            self.missing += [] if path is None else [path]
            return
        if found in self._seen:
            return
        self._seen.add(found)
        for line in _lines(found):
            self._file_line(line, PurePosixPath(path).parent)

    def _file_line(self, line: str, folder: PurePosixPath) -> None:
        if not line.startswith("-"):
            self.requirement(line)
            return
        words: list[str | None] = [*line.split()]
        name, value = _option(str(words.pop(0)), words)
        if name in _FILE_OPTIONS and value is not None:
            value = str(folder / value)
        self.option(name, value)


def _lines(path: Path) -> Iterable[str]:
    """The lines of a file of requirements, without comments and digests."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_FILE_BYTES)
    except OSError:
        return
    for line in text.replace("\\\n", " ").splitlines():
        stripped = re.sub(r"(^|\s)#.*", "", line)
        stripped = re.sub(r"\s--hash[= ]\S+", "", stripped).strip()
        if stripped:
            yield stripped


def _tool(words: Sequence[str | None], files: Files, *, runs: str) -> Install:
    """`uvx` or `uv run`: the environment that it makes.

    Args:
        words: what follows the name.
        files: for files of requirements.
        runs: `tool` where the first word that is no option is a package too, else `command`.
    """
    found = _Found(files)
    wanted: list[str | None] = []
    version: str | None = None
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word is None or not word.startswith("-"):
            wanted.append(word)
            break
        name, value = _option(word, rest)
        if name == "--from":
            wanted.append(value)
        elif name == "--with":
            found.requirements(value)
        elif name == "--python":
            version = version_in(value or "")
        elif name in (*_FILE_OPTIONS, *_CANNOT):
            found.option(name, value)
    if runs == "tool" and wanted and not _is_interpreter(wanted[0]):
        found.requirement(None if wanted[0] is None else _pinned(wanted[0]))
    python = [f"--python={version}"] if version and found.packages else []
    tool = tuple(sorted({*found.packages, *python}))
    return Install(tool=tool, problems=tuple(found.problems))


def _is_interpreter(tool: str | None) -> bool:
    """Whether `uvx` starts Python itself, with what the environment has."""
    return tool is not None and _PYTHON.fullmatch(tool) is not None


def _pinned(tool: str) -> str:
    """`name@1.0` as `uvx` takes it, in the words of `pip`."""
    name, at, version = tool.partition("@")
    if not at or "://" in version or " " in tool:
        return tool
    return name if version == "latest" else f"{name}=={version}"


def merged(*parts: Sequence[str]) -> tuple[str, ...]:
    """Requirements of several commands as those of one.

    As `pip` called again and again has it: a version that is asked for later replaces an earlier
    one, and a bare name is content with what there is.
    """
    kept: dict[str, tuple[str, ...]] = {}
    for words in (words for part in parts for words in _groups(part)):
        word = words[0]
        match = _NAME.match(word)
        if match is None:
            kept[" ".join(words)] = words
            continue
        name = re.sub(r"[-_.]+", "-", match[0]).lower()
        beyond = word[match.end() :]
        if beyond.startswith("[") and beyond.endswith("]") and name in kept:
            kept[word.lower()] = words
        elif (beyond or name not in kept) and kept.get(name) != words:
            kept.pop(name, None)
            kept[name] = words
    return tuple(word for words in kept.values() for word in words)


def without(packages: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Requirements and options that are not among others."""
    there = set(_groups(known))
    return tuple(word for words in _groups(packages) if words not in there for word in words)


def _groups(packages: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Requirements and options, each with the value that is a word of its own."""
    rest = iter(packages)
    for word in rest:
        takes_value = word == "--extra-index-url" or word in _KEPT_VALUES
        value = next(rest, None) if takes_value else None
        yield (word,) if value is None else (word, value)
