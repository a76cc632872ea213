"""What `harness import conversation` and `vcr` write, and what they say about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

from harness.analysis.numbers import plural
from harness.cassette.convert.exchange import Found
from harness.cassette.convert.writing import Target, targets, write
from harness.cli import FINE
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.redaction import Redactor
from harness.runner.imported.suite_folder import (
    ImportedTask,
    asking_model,
    check_suite,
    suite_of_task,
    write_suite,
)
from harness.runner.imported.told import Told, read_told
from harness.runner.naming import safe_name
from harness.runner.plan import SUITES

CASSETTES = Path("cassettes")
_FEW_FILES = 6
_IN_ORDER = "Each is replayed in order, the n-th model call gets the n-th answer:"


def import_alone(
    terminal: Terminal,
    found: Sequence[Found],
    others: Sequence[Path],
    out: Path,
    suite: Path | None,
    redactor: Redactor,
) -> int:
    """Conversations as cassettes, with a suite of their own that replays them.

    Args:
        terminal: Where to tell of it.
        found: The conversations.
        others: Files that are none.
        out: Folder or file of the cassettes.
        suite: Folder of the suite; None is one named after `out`.
        redactor: Removes secrets.

    Raises:
        BadInputError: something is there already, or cannot be written.
    """
    if out.suffix == ".jsonl":
        if suite is not None:
            raise BadInputError(f"--suite: {out} is one file, which no suite finds; name a folder")
        chosen = write_cassettes(found, out, "position", redactor)
        _tell(terminal, chosen, others, {}, [_IN_ORDER, *use_lines(chosen)])
        return FINE
    named = _apart([replace(one, name=safe_name(one.name)) for one in found])
    name, folder = safe_name(out.name), suite or SUITES / safe_name(out.name)
    if name != out.name:
        raise BadInputError(f"--out {out}: no suite can be called {out.name!r}; choose another")
    tasks = list(_tasks(named))
    targets(named, out)
    check_suite(folder, name, tasks)
    chosen = write_cassettes(named, out, "position", redactor)
    held = write_suite(folder, name, tasks)
    command = ["harness", "run", str(folder)]
    if out.parent != CASSETTES:
        command += ["--cassettes", str(out.parent)]
    run = shlex.join(command)
    added = f"{plural(len(tasks), 'task')} added, {held} in all" if held > len(tasks) else ""
    lines = [f"{folder}: {added or plural(held, 'task')}; to replay them: {run}", ""]
    _tell(
        terminal,
        chosen,
        others,
        {"suite": str(folder), "run": run},
        [*lines, _IN_ORDER, *use_lines(chosen)],
    )
    return FINE


def _apart(found: Sequence[Found]) -> list[Found]:
    """Those of one name that one task cannot replay get a number each."""
    manners: dict[str, set[tuple[object, ...]]] = {}
    for one in found:
        manners.setdefault(one.name, set()).add(read_told(one).manner)
    taken = set(manners)
    apart = []
    for one in found:
        if len(manners[one.name]) > 1:
            numbered = (f"{one.name}-{number}" for number in count())
            one = replace(one, name=next(name for name in numbered if name not in taken))
            taken.add(one.name)
        apart.append(one)
    return apart


def _tasks(found: Sequence[Found]) -> Iterator[ImportedTask]:
    """A task for each name; conversations of the same name are its repeats."""
    by_name: dict[str, list[Found]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    for name, members in sorted(by_name.items()):
        first = members[0]
        # All end by themselves, the longest too.
        turns = max(len(one.exchanges) for one in members)
        told = replace(read_told(first), turns=turns)
        yield ImportedTask(name, told, f"{first.source}: {first.file.name}", len(members))


def import_into(
    terminal: Terminal,
    found: Sequence[Found],
    others: Sequence[Path],
    into: str,
    redactor: Redactor,
) -> int:
    """Conversations as recordings of a task that is there.

    Raises:
        BadInputError: there is no such task, or it has recordings.
    """
    suite, folder = suite_of_task(into)
    named = [replace(one, name=folder.name) for one in found]
    chosen = write_cassettes(named, CASSETTES / suite, "position", redactor)
    run = shlex.join(_live_command(folder, read_told(found[0])))
    lines = ["Replayed in order. To have its commands run on the task's machine:", f"  {run}"]
    _tell(terminal, chosen, others, {"run": run}, lines)
    return FINE


def _live_command(folder: Path, told: Told) -> Iterator[str]:
    yield from ("harness", "run", str(folder.parent), "--task", folder.name, "--tools", "live")
    yield from ("--preset", told.preset)
    model = asking_model(told)
    for key, value in model.items():
        yield from ("--set", f"model.{key}={value}")
    yield from ("--set", f"loop.max_iterations={told.turns}", "--set", "loop.error_threshold=0")


def write_cassettes(
    found: Sequence[Found], out: Path, match: Literal["request", "position"], redactor: Redactor
) -> list[Target]:
    """Write all of them; where one is there already, none is."""
    chosen = targets(found, out)
    for target in chosen:
        write(target, match=match, redactor=redactor)
    return chosen


def _tell(
    terminal: Terminal,
    chosen: Sequence[Target],
    others: Sequence[Path],
    more: dict[str, object],
    lines: Sequence[str],
) -> None:
    data = {"cassettes": cassette_data(chosen), **more}
    if others:
        data["left_out"] = list(map(str, others))
    left_out = [f"left out, no conversation: {path}" for path in others[:_FEW_FILES]]
    if len(others) > _FEW_FILES:
        left_out.append(f"left out, no conversation: {len(others) - _FEW_FILES} more files")
    terminal.result(data, [*cassette_lines(chosen, "turn"), *left_out, "", *lines])


def cassette_data(chosen: Sequence[Target]) -> list[dict[str, object]]:
    """What was written, and from what."""
    return [
        {
            "file": str(target.path),
            "from": str(target.found.file),
            "format": target.found.source,
            "interactions": len(target.found.exchanges),
            "tool_results": _tool_results(target.found),
            "left_out": list(target.found.left_out),
        }
        for target in chosen
    ]


def cassette_lines(chosen: Sequence[Target], calls: str) -> Iterator[str]:
    """The same for people."""
    for target in chosen:
        found = target.found
        what = plural(len(found.exchanges), calls)
        if tools := _tool_results(found):
            what += f" and {plural(tools, 'tool result')}"
        yield f"{target.path}: {what} from {found.file} ({found.source})"
        for words in found.left_out:
            yield f"  left out: {words}"


def use_lines(chosen: Sequence[Target]) -> Iterator[str]:
    """How a test of one's own uses the first."""
    yield f'  with harness.cassette.use("{chosen[0].path}"):'


def _tool_results(found: Found) -> int:
    return sum(len(exchange.observations) for exchange in found.exchanges)
