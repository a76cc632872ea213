"""Imported recordings become cassettes."""

from __future__ import annotations

import importlib.metadata
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from harness.cassette.convert.exchange import Exchange, Found
from harness.cassette.file.journal import Journal
from harness.cassette.file.tape import Origin, Tape, ToolKey
from harness.cassette.format import HeaderLine, StoredResult, TrialLine
from harness.errors import BadInputError
from harness.redaction import Redactor

VARIANT = "imported"
"""The variant that imported interactions belong to."""

_UNSAFE = re.compile(r"[^\w.-]+")
_MOST_CHARS = 60
"""Of a part of a path: names of files are limited in bytes, and a letter may be four."""


@dataclass(frozen=True, slots=True)
class Target:
    """A recording and the cassette that it becomes."""

    found: Found
    path: Path
    repeat: int
    suite: str


def targets(found: Iterable[Found], out: Path) -> list[Target]:
    """Where each recording goes: `OUT/NAME/REPEAT.jsonl`, or the one file that `out` names.

    Raises:
        BadInputError: a cassette is there already, or one file is to hold several recordings.
    """
    every = list(found)
    if out.suffix == ".jsonl":
        if len(every) > 1:
            raise BadInputError(f"{out}: one file for {len(every)} recordings; name a folder")
        chosen = [Target(every[0], out, 0, VARIANT)]
    else:
        repeats: Counter[str] = Counter()
        chosen = []
        for one in every:
            name = safe_name(one.name)
            path = out / name / f"{repeats[name]}.jsonl"
            chosen.append(Target(one, path, repeats[name], out.name or VARIANT))
            repeats[name] += 1
    for target in chosen:
        if target.path.exists():
            raise BadInputError(
                f"{target.path}: is there already; remove it, or choose another place with --out"
            )
    return chosen


def safe_name(name: str) -> str:
    """A name out of a file as a path that stays where it is put."""
    parts = (_UNSAFE.sub("-", part)[:_MOST_CHARS].strip(".-") for part in PurePosixPath(name).parts)
    return "/".join(filter(None, parts)) or VARIANT


def write(target: Target, *, match: Literal["request", "position"], redactor: Redactor) -> None:
    """Write a cassette; the file is there when it is whole.

    Raises:
        CassetteError: somebody else is recording it, or has made it meanwhile.
        InfrastructureError: it cannot be written.
    """
    header = HeaderLine(
        suite=target.suite,
        task=redactor.text(safe_name(target.found.name)),
        repeat=target.repeat,
        task_digest="",
        versions={"loop-harness": importlib.metadata.version("loop-harness")},
        match=match,
        source=redactor.text(f"{target.found.source}: {target.found.file.name}"),
        meta=target.found.meta or None,
    )
    partial = target.path.with_name(target.path.name + ".partial")
    with ExitStack() as opened:
        journal = Journal.open_for_writing(partial, may_start_over=True)
        opened.callback(journal.close)
        if not journal.is_empty:
            raise BadInputError(f"{partial}: an unfinished recording; remove it or finish it first")
        opened.callback(partial.unlink, missing_ok=True)
        journal.append(header)
        origin = Origin(header.suite, header.task, header.repeat, header.task_digest)
        _fill(Tape(journal, origin, redactor), target.found.exchanges)
        journal.publish(target.path)


def _fill(tape: Tape, exchanges: Iterable[Exchange]) -> None:
    seen: Counter[str] = Counter()
    interactions = []
    tools = []
    now = datetime.now(UTC)
    for exchange in exchanges:
        request = exchange.request
        name = tape.add_interaction(
            request,
            seen[request.digest],
            exchange.response,
            variant=VARIANT,
            latency_s=exchange.latency_s,
            recorded_at=exchange.recorded_at or now,
        ).id
        seen[request.digest] += 1
        interactions.append(name)
        for given in exchange.observations:
            # Which tool it was is not known beyond its name: nothing can be digested.
            key = ToolKey(name, given.position, given.name, given.arguments, "", 0.0)
            result = StoredResult(
                content=given.content, status="ok", duration_s=0.0, together=given.together
            )
            tools.append(tape.add_tool(key, result, sandbox=None, variant=VARIANT))
    tape.add_trial(
        TrialLine(
            variant=VARIANT,
            task_digest="",
            finished_at=now,
            interactions=tuple(interactions),
            tools=tuple(tools),
            verdicts=(),
        )
    )
