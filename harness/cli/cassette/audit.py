"""`harness cassette audit`: what is wrong with recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.analysis.numbers import plural
from harness.cassette.care.audit import KINDS, Finding, FindingKind, audit, audit_partial
from harness.cassette.secrets import secrets_in
from harness.cli import DOES_NOT_HOLD, FINE
from harness.cli.cassette.files import FOLDER, cassettes_in, no_cassette, ranges
from harness.cli.cassette.suites import said_by, suite_option
from harness.cli.options import environment, make_command
from harness.cli.terminal import Terminal, table
from harness.errors import CassetteError
from harness.redaction import Redactor

_NEXT_STEPS: dict[FindingKind, str] = {
    "damaged": "after an edit by hand `harness cassette fix FILE`; else take the file back from"
    " version control",
    "orphaned": "`harness cassette prune --suite SUITE` removes it",
    "unplayed": "`harness cassette prune` removes it",
    "stale": "record again: `harness run SUITE --record-mode new_episodes --allow-live` asks the"
    " model only what is missing; `harness cassette prune --suite SUITE` removes variants that are"
    " gone",
    "duplicate": "`harness cassette prune` removes what is not used, `harness cassette fix` lines"
    " that stand twice",
    "leaking": "revoke the key; replace it in the file, then `harness cassette fix FILE`, or record"
    " again",
    "unfinished": "`harness run SUITE --record-mode new_episodes --allow-live` goes on with it",
}


@make_command("audit", example="harness cassette audit cassettes/basics --suite basics")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@suite_option
def command(terminal: Terminal, paths: tuple[Path, ...], suites: tuple[str, ...]) -> int:
    """Check every line of cassettes (default: all in the folder cassettes).

    \b
    damaged     not what was recorded, or edited by hand and not sealed again
    orphaned    a file or a line that nothing belongs to any more
    unplayed    no finished trial uses it
    stale       the task or the variant has changed since (needs --suite)
    duplicate   the same twice
    leaking     holds a secret
    unfinished  a recording that was interrupted

    Exit code 1 if anything is found.
    """  # noqa: D301 - click's mark for lines that stay as they are
    said = said_by(suites)
    redactor = Redactor(secrets_in(environment(), said.names), extra=said.secrets)
    files = [file for path in paths or (FOLDER,) for file in cassettes_in(path)]
    findings: list[Finding] = []
    for file in files:
        try:
            findings += audit(file, redactor, said.cells)
        except CassetteError as error:
            findings.append(Finding(kind="damaged", file=str(file), text=str(error)))
    findings += [audit_partial(partial) for partial in _partials(paths or (FOLDER,))]
    data = {
        "files": len(files),
        "healthy": not findings,
        "findings": [one.model_dump(mode="json") for one in findings],
    }
    lines = _lines(len(files), findings)
    if not files and not findings:
        lines = iter([no_cassette(paths or (FOLDER,))])
    terminal.result(data, lines)
    return DOES_NOT_HOLD if findings else FINE


def _partials(paths: Sequence[Path]) -> Iterator[Path]:
    """Unfinished recordings and changes; one that was killed before it began is nothing."""
    for path in paths:
        for end in ("partial", "new"):
            beside = path.with_name(f"{path.name}.{end}")
            found = sorted(path.rglob(f"*.jsonl.{end}")) if path.is_dir() else [beside]
            yield from (one for one in found if one.is_file() and one.stat().st_size)


def _lines(files: int, findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        yield f"{plural(files, 'cassette')}: healthy"
        return
    rows = [[one.kind, _where(one), one.text] for one in findings]
    yield from table([["kind", "where", "what"], *rows])
    counts = Counter(one.kind for one in findings)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    yield f"{plural(files, 'cassette')}, {plural(len(findings), 'finding')}: {told}"
    for kind in KINDS:
        if counts[kind]:
            yield f"{kind}: {_NEXT_STEPS[kind]}"


def _where(finding: Finding) -> str:
    return f"{finding.file}:{ranges(finding.lines)}" if finding.lines else finding.file
