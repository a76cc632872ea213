"""`harness cassette show`: a cassette as a tree of conversations."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from harness.analysis.numbers import count, plural, seconds
from harness.cassette.file.lines import Problem
from harness.cassette.file.view import CassetteView, read_damaged
from harness.cassette.format import ToolLine, VerdictLine
from harness.cassette.response.body import answering_model
from harness.cassette.show.calls import SpokenCall, spoken
from harness.cassette.show.conversations import Conversations, conversations
from harness.cassette.show.transcript import Passage
from harness.cli import FINE
from harness.cli.cassette.files import existing
from harness.cli.cassette.ls import summary
from harness.cli.options import make_command
from harness.cli.terminal import Terminal
from harness.errors import CassetteError
from harness.schema.messages import StopReason, Usage

_INDENT = "    "
_MOST_LINES = 24
_MOST_CHARS = 2_000
_STOPS = {
    StopReason.MAX_TOKENS: "cut at its length limit",
    StopReason.REFUSAL: "refused",
    StopReason.PAUSE_TURN: "paused",
    StopReason.STOP_SEQUENCE: "ended by a stop sequence",
}


@make_command("show", example="harness cassette show cassettes/basics/contact-card/0.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--full", is_flag=True, help="Also on a terminal: long texts whole, as in a pipe or a file."
)
def command(terminal: Terminal, file: Path, full: bool) -> int:
    """Print a cassette as the tree of its conversations, each branch with its variants.

    Lines that are damaged or were edited are named, and shown as far as they can be read; what is
    no cassette is shown as it is. That serves as git's textconv driver.
    """
    try:
        view, problems = read_damaged(existing(file))
    except CassetteError as error:
        if terminal.json:
            raise
        # No failure: git gives up a whole diff, of all files, where its driver fails.
        terminal.result(None, _as_it_is(file, error))
        return FINE
    arranged = conversations(view)
    shown = _Page(view, arranged, problems, whole=full or not sys.stdout.isatty())
    terminal.result(_data(view, arranged, problems), shown.lines())
    return FINE


def _as_it_is(file: Path, error: CassetteError) -> Iterator[str]:
    # Without the file's name: git gives every version of a file another one.
    yield f"  line {str(error).removeprefix(f'{file}:')}"
    yield from file.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")


def _data(
    view: CassetteView, arranged: Conversations, problems: Sequence[Problem]
) -> dict[str, object]:
    return summary(view).model_dump(mode="json") | {
        "problems": [{"line": one.number, "text": one.text} for one in problems],
        "tree": [
            call.interaction.line.model_dump(mode="json")
            | {
                "endpoint": call.interaction.endpoint,
                "parent": call.before,
                "children": list(arranged.after.get(name, ())),
                "variants": list(call.interaction.variants),
                "tools": [tool.model_dump(mode="json") for tool in call.interaction.tools],
            }
            for name, call in arranged.calls.items()
        ],
        "verdict_lines": [verdict.model_dump(mode="json") for verdict in view.verdicts],
    }


class _Page:
    """A cassette as lines."""

    def __init__(
        self,
        view: CassetteView,
        arranged: Conversations,
        problems: Sequence[Problem],
        *,
        whole: bool,
    ) -> None:
        self._view = view
        self._arranged = arranged
        self._problems = problems
        self._calls = spoken(view, arranged)
        self._whole = whole

    def lines(self) -> Iterator[str]:
        yield from self._head()
        for name in self._arranged.after.get(None, ()):
            yield from self._branch(name, "")
        for verdict in self._view.verdicts:
            yield from self._verdict(verdict)

    def _head(self) -> Iterator[str]:
        view, head = self._view, self._view.header
        yield f"{head.suite} · {head.task} · repeat {head.repeat}"
        for problem in self._problems:
            yield f"  line {problem.number}: {problem.text}"
        if head.source is not None:
            yield f"  imported from {head.source}"
        if head.match == "position":
            yield "  answers are given in order, whatever is asked"
        if head.task_digest:
            yield f"  task {head.task_digest[:12]}"
        rewards = {verdict.id: _rewards(verdict) for verdict in view.verdicts}
        for variant, trial in view.trials.items():
            lines = [
                view.interactions[i].line for i in trial.interactions if i in view.interactions
            ]
            facts = [
                plural(len(trial.interactions), "model call"),
                plural(len(trial.tools), "tool call"),
                *_time(sum(line.latency_s for line in lines)),
                *(rewards.get(name, "") for name in trial.verdicts),
            ]
            yield f"  {variant}: {', '.join(facts)}, {trial.finished_at.date()}"
        unfinished = {one.line.variant for one in view.interactions.values()} - view.trials.keys()
        if unfinished:
            yield f"  not finished: {', '.join(sorted(unfinished))}"

    def _branch(self, first: str, margin: str) -> Iterator[str]:
        """A conversation from a call on; where it parts, each branch has a margin of its own."""
        waiting = [(first, margin)]
        while waiting:
            name, margin = waiting.pop()
            after = self._arranged.after.get(name, ())
            yield ""
            for line in self._call(self._calls[name], [self._calls[other] for other in after]):
                yield f"{margin}{line}".rstrip()
            inner = margin if len(after) == 1 else f"{margin}│ "
            waiting += [(other, inner) for other in reversed(after)]

    def _call(self, one: SpokenCall, after: Sequence[SpokenCall]) -> Iterator[str]:
        variants = ", ".join(one.call.interaction.variants)
        yield f"━━ {' · '.join((str(one.call.number), variants, *_facts(one)))}"
        for passage in (*one.asked, *one.answered):
            yield from self._passage(passage)
        for tool in one.ran:
            yield from self._tool(tool, after)

    def _tool(self, tool: ToolLine, after: Sequence[SpokenCall]) -> Iterator[str]:
        """A tool that ran; its result where it is not in what the next requests say."""
        facts = f"{tool.result.status}, {seconds(tool.result.duration_s)}"
        told = tool.result.content.strip()
        if after and all(any(told in part.text for part in one.asked) for one in after):
            yield f"── Ran {tool.name} ({facts})"
        else:
            yield from self._passage(
                Passage(f"Ran {tool.name} ({facts}) and got", tool.result.content)
            )

    def _verdict(self, verdict: VerdictLine) -> Iterator[str]:
        trials = self._view.trials.items()
        users = [variant for variant, trial in trials if verdict.id in trial.verdicts]
        title = f"Verdict of {', '.join(users) or verdict.variant}: {_rewards(verdict)}"
        yield ""
        yield from self._passage(Passage(title, verdict.verdict.log.strip()))

    def _passage(self, passage: Passage) -> Iterator[str]:
        yield f"── {passage.title}"
        text = passage.text.rstrip("\n")
        if text:
            yield from (f"{_INDENT}{line}" for line in self._shortened(text))

    def _shortened(self, text: str) -> Iterable[str]:
        shown = text if self._whole else "\n".join(text.split("\n")[:_MOST_LINES])[:_MOST_CHARS]
        lines = shown.split("\n")
        if len(shown) < len(text):
            lines.append(f"… {count(len(text) - len(shown))} more characters: --full")
        return lines


def _facts(one: SpokenCall) -> Iterator[str]:
    line = one.call.interaction.line
    yield from _time(line.latency_s)
    if line.first_byte_s is not None:
        yield f"first byte after {seconds(line.first_byte_s)}"
    if one.turn is not None and one.turn.usage is not None:
        yield _tokens(one.turn.usage)
    if one.turn is not None and one.turn.stop in _STOPS:
        yield _STOPS[one.turn.stop]
    if (model := answering_model(line.response)) is not None:
        yield model
    if line.response.cut and not line.response.is_out_of_time:
        yield "closed before its end"
    if line.repeats:
        yield "also given to every later request like it"


def _time(duration_s: float) -> list[str]:
    """A duration; nothing where it is not known, as in what was imported."""
    return [seconds(duration_s)] if duration_s else []


def _tokens(usage: Usage) -> str:
    cached = usage.cache_read or 0
    given = (usage.input or 0) + cached + (usage.cache_write or 0)
    from_cache = f" ({count(cached)} from cache)" if cached else ""
    return f"{count(given)} tokens in{from_cache}, {count(usage.output)} out"


def _rewards(verdict: VerdictLine) -> str:
    rewards = ", ".join(f"{name} {value:g}" for name, value in verdict.verdict.rewards.items())
    return rewards or verdict.verdict.error or "no reward"
