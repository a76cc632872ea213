"""Random cases: what a model says, how a loop is set up, what happens around its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import StopReason, Usage

Made = TypeVar("Made")

OWN_TOOLS = ("output", "submit", "task_complete")
HARMLESS = ("good", "alone", "slow", "strict", "writes")
FAILING = ("raising", "failing", "late", "says", "odd")
ASKING = ("finish", "signals", "suspends", "blocks", "injects", "pauses", "registers", "extra")
EFFECTS = ("commands", "fetches", "silent")
RARE = ("cancels", "infra", "no such tool!")
FAILURES = ("down", "busy", "malformed", "bug", "miss", "context", "infra")


@dataclass(frozen=True)
class Said:
    """One answer of the model: a failure, or text and calls."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    stop: StopReason | None = None
    usage: Usage | None = None
    thinks: bool = False
    same_ids: bool = False
    """Calls carry ids that other calls have too."""
    failure: str | None = None


@dataclass(frozen=True)
class Case:
    """All that decides how the runs of one loop go."""

    script: tuple[Said, ...]
    settings: Mapping[str, Any]
    setup: Mapping[str, str] = field(default_factory=dict)
    """What else the loop is given, by name: see `stage.py`."""
    hooks: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    acts: tuple[tuple[int, str], ...] = ()
    """What happens to the loop from outside, and at which moment."""
    given: str = "conversation"
    afterwards: str = "stop"


SETTINGS: dict[str, Sequence[Any]] = {
    "max_iterations": [5, 3, 2, 5, 1, 0],
    "max_attempts": [2, 1, 2, 0],
    "text_only": ["accept", "accept", "nudge", "nudge", "error"],
    "nudge_max": [0, 2],
    "confirm": [
        {"enabled": True},
        {"enabled": True, "max_prompts": 1},
        {"enabled": True, "mode": "second_text", "prompt": "Sure?"},
    ],
    "reflection": [True, True],
    "submit_before_output": ["feedback"],
    "tool_error": ["fail", "continue", "continue"],
    "error_threshold": [0, 0, 1, 2],
    "llm_error_threshold": [2, 3, 3],
    "breaker": [1, 2],
    "semantic_failures": [False],
    "loop_detection": [2, 3],
    "max_tool_calls_per_turn": [1, 2, 3],
    "overflow": ["drop", "drop"],
    "parallel_tools": [4, 2, 3, 4],
    "end_strategy": ["graceful", "early"],
    "multi_output": ["first"],
    "multi_signal": ["first"],
    "on_truncation": ["fail", "execute"],
    "on_limit": ["callback", "wrap_up", "wrap_up"],
    "soft_limit": [1, 3],
    "hard_limit": [1, 2, 4],
    "on_denied": ["stop"],
    "tool_choice": ["required", "good", "finish"],
    "max_output_tokens": [7],
    "governance": [
        {"per_minute": 3},
        {"burst": 1},
        {"autonomy": "read_only"},
        {"autonomy": "supervised"},
        {"scopes": ["tools:good", "tools:writes"]},
        {"commands": ["ls"], "paths": ["/workspace/a"], "domains": ["example.com"]},
    ],
    "budget": [
        *({"max_iterations": limit} for limit in (3, 2)),
        *({"max_tool_calls": limit} for limit in (5, 1)),
        *({"max_tokens": limit} for limit in (40, 20, 7)),
        *({"max_duration_s": limit} for limit in (4, 1.5)),
        *({"max_cost_usd": limit} for limit in (41, 21)),
        *({"max_files_modified": limit} for limit in (0, 1)),
        *({"max_lines_changed": limit} for limit in (0, 3)),
    ],
    "window": [{"max_messages": 1}, {"max_messages": 4}, {"max_tokens": 30}],
    "compaction": [{"above_tokens": 1}, {"above_tokens": 40}],
    "debug_llm": [True],
    "empty_retries": [1, 2],
    "text_protocol": ["terminus2", "react", "hermes", "xml", "json"],
    "history": ["continue", "continue"],
    "prompt_cache": [False],
    "suspend_reply": [False],
    "stop_when": [
        [{"tool_called": "good"}],
        [{"text_contains": "text"}, {"tokens_above": 30}],
        ["third"],
        ["raises"],
    ],
}
SETUP: dict[str, Sequence[str]] = {
    "output": ["declared", "declared", "declared"],
    "terminal": ["finish", "finish"],
    "check": ["signals", "raises", "wrong"],
    "callback": ["signals", "nothing", "raises", "wrong"],
    "skills": ["list", "narrow"],
    "recall": ["finds", "raises"],
    "observer": ["raises"],
}
HOOKS = (
    "modifies", "skips", "raises", "approves", "rejects", "approver_raises", "approver_modifies",
    "replaces", "replaces_whole", "after_raises", "appends", "narrows", "shortens", "canned",
    "warms", "pauses", "begins", "wrong", "ends",
)  # fmt: skip
CHECKS = ("denies", "escalates", "blocks", "warns", "raises", "wrong")
ACTS = ("cancel", "cancel", "cancel_elsewhere", "inject", "inject_elsewhere", "pause",
        "pause_and_cancel", "raise")  # fmt: skip

ARGUMENTS = (
    *["{}"] * 5,
    *['{"path": "/workspace/a"}'] * 6,
    *['{"path": "/workspace/b", "result": "long enough"}'] * 6,
    '{"result": "x"}',
    '{"result": 1}',
    "",
    "{bad",
    "[]",
    '{"x": NaN}',
    '{"success": false}',
)
NAMES = (*HARMLESS * 8, *OWN_TOOLS, *FAILING * 2, *ASKING, *EFFECTS, *RARE)
TEXTS = (
    "",
    " \n",
    "text",
    "COMPLETED: yes",
    "continue: no",
    '{"result": "long enough"}',
    '```json\n{"result": "x"}\n```',
    "Action: good\nAction Input: {}",
    "end \n",
)
TOKENS = (None, 0, 1, 7, 20)


def pool(make: Callable[[Random], Made]) -> st.SearchStrategy[Made]:
    """One of many things that were made up once, the simple ones first.

    Drawing every detail of a case would take longer than playing it.
    """
    random = Random(2026)
    return st.sampled_from(sorted((make(random) for _ in range(1500)), key=lambda m: len(repr(m))))


def _answer(random: Random) -> Said:
    calls = random.choice((0, 1, 1, 2, 2, 3, 3, 4, 5))
    usage = Usage(**{bucket: random.choice(TOKENS) for bucket in Usage.model_fields})
    return Said(
        text=random.choice(TEXTS),
        calls=tuple((random.choice(NAMES), random.choice(ARGUMENTS)) for _ in range(calls)),
        stop=random.choice((*[None] * 50, *StopReason)),
        usage=random.choice((None, usage)),
        thinks=random.random() < 0.1,
        same_ids=random.random() < 0.05,
        failure=random.choice((*[None] * 100, *FAILURES)),
    )


def _some_of(
    choices: Mapping[str, Sequence[Any]], numbers: Sequence[int]
) -> Callable[[Random], dict[str, Any]]:
    def make(random: Random) -> dict[str, Any]:
        names = random.sample(list(choices), random.choice(numbers))
        return {name: random.choice(choices[name]) for name in names}

    return make


def _settings(random: Random) -> dict[str, Any]:
    some = _some_of(SETTINGS, range(7))(random)
    for name in ("budget", "budget", "parallel_tools", "end_strategy", "text_protocol"):
        if random.random() < 0.15:
            some[name] = random.choice(SETTINGS[name])
    return {"error_threshold": random.choice((0, 3)), **some}


def _around(random: Random) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[int, str], ...]]:
    """Hooks, checks, and acts at their moments."""
    some = (0, 0, 1, 2)
    acts = [(random.randint(1, 60), random.choice(ACTS)) for _ in range(random.choice(some))]
    return (
        tuple(random.sample(HOOKS, random.choice(some))),
        tuple(random.sample(CHECKS, random.choice((0, 0, 1)))),
        tuple(acts),
    )


answers = pool(_answer)
random_settings = pool(_settings)
random_setups = pool(_some_of(SETUP, range(4)))
surroundings = pool(_around)
FINE = '{"result": "long enough"}'
AIMS: dict[Reason, tuple[dict[str, Any], dict[str, str], tuple[Said, ...]]] = {
    Reason.COMPLETED: ({}, {"output": "declared"}, (Said(calls=(("output", FINE),)),)),
    Reason.SIGNAL: (
        {"end_strategy": "early"},
        {"terminal": "finish"},
        (Said(calls=(("good", "{}"), ("finish", "{}"), ("good", "{}"))),),
    ),
    Reason.MAX_ITERATIONS: ({"max_iterations": 1}, {}, (Said(calls=(("good", ""),)),)),
    Reason.MAX_ATTEMPTS: (
        {"max_attempts": 1},
        {"output": "declared"},
        (Said(calls=(("output", '{"result": "x"}'),)),),
    ),
    Reason.NO_OUTPUT: ({"text_only": "error"}, {}, (Said("text"),)),
    Reason.SUBMIT_BEFORE_OUTPUT: (
        {"reflection": True, "submit_before_output": "fatal"},
        {"output": "declared"},
        (Said(calls=(("submit", "{}"),)),),
    ),
    Reason.NO_SUBMIT: (
        {"reflection": True, "text_only": "error"},
        {"output": "declared"},
        (Said(calls=(("output", FINE),)), Said("text")),
    ),
    Reason.ERROR: ({"error_threshold": 1}, {}, (Said(calls=(("raising", "{}"),)),)),
    Reason.TOOL_ERROR: ({"tool_error": "fail"}, {}, (Said(calls=(("failing", "{}"),)),)),
    Reason.MODEL_ERROR: ({"llm_error_threshold": 1}, {}, (Said(failure="down"),)),
    Reason.LOOP_DETECTED: ({"loop_detection": 2}, {}, (Said(calls=(("good", "{}"),)),) * 2),
    Reason.BUDGET_EXCEEDED: (
        {"budget": {"max_lines_changed": 3}},
        {},
        (Said(calls=(("writes", "{}"),) * 3),),
    ),
    Reason.DURATION_EXCEEDED: (
        {"budget": {"max_duration_s": 0.3}},
        {},
        (Said(calls=(("good", "{}"),)),),
    ),
    Reason.DENIED: (
        {"on_denied": "stop", "governance": {"autonomy": "read_only"}},
        {},
        (Said(calls=(("writes", "{}"),)),),
    ),
    Reason.BLOCKED: ({}, {}, (Said(calls=(("blocks", "{}"),)),)),
    Reason.REFUSAL: ({}, {}, (Said("no", stop=StopReason.REFUSAL),)),
    Reason.TRUNCATED: (
        {"on_truncation": "fail"},
        {},
        (Said(calls=(("good", "{}"),), stop=StopReason.MAX_TOKENS),),
    ),
    Reason.CONTEXT_EXCEEDED: ({}, {}, (Said(failure="context"),)),
    Reason.CANCELLED: ({}, {}, (Said(calls=(("cancels", "{}"), ("good", "{}"))),)),
    Reason.SUSPENDED: ({}, {}, (Said(calls=(("suspends", "{}"), ("good", "{}"))),)),
    Reason.REPLAY_MISS: ({}, {}, (Said(failure="miss"),)),
    Reason.INFRASTRUCTURE_ERROR: ({}, {}, (Said(calls=(("infra", "{}"), ("good", "{}"))),)),
}
"""Settings, setup and first answers that are likely to bring each ending."""

OTHER_WAYS: dict[Reason, tuple[dict[str, Any], tuple[Said, ...]]] = {
    Reason.ERROR: (
        {"breaker": 1, "error_threshold": 2},
        (*[Said(calls=(("raising", "{}"),))] * 2, Said(calls=(("failing", "{}"),))),
    ),
    Reason.BUDGET_EXCEEDED: (
        {"budget": {"max_cost_usd": 21, "max_tool_calls": 9}},
        (Said(calls=(("good", "{}"),), usage=Usage(input=20, output=7)),) * 2,
    ),
    Reason.SUSPENDED: (
        {"max_iterations": 2, "error_threshold": 0},
        (Said(calls=(("suspends", "{}"),)), *[Said(calls=(("good", "{}"),))] * 3),
    ),
    Reason.MAX_ITERATIONS: (
        {"max_iterations": 1, "on_limit": "wrap_up", "parallel_tools": 4},
        (Said(calls=(("good", "{}"), ("slow", "{}"), ("alone", "{}"), ("good", "{}"))),),
    ),
}


WILD_SETTINGS: dict[str, Sequence[Any]] = {
    **SETTINGS,
    "max_iterations": [-1, 3, None],
    "soft_limit": [5],
    "tool_choice": ["ghost", "output", "submit"],
    "governance": [{"commands": ["ls -l"]}, {"paths": [""]}, {"domains": ["http://x"]}],
    "budget": [{"max_cost_usd": 1}, {"max_tokens": -1}, {"max_duration_s": float("nan")}],
    "window": [{}],
    "stop_when": [["ghost"], [{"tool_called": "ghost"}], [{}]],
    "ghost": [1],
}
WILD_SETUP: dict[str, Sequence[str]] = {
    **SETUP,
    "output": ["bare", "good", "submit", "task_complete", "declared"],
    "terminal": ["finish", "ghost", "output"],
    "skills": ["ghost", "narrow"],
    "price": ["none"],
}
wild_settings = pool(_some_of(WILD_SETTINGS, (1, 2, 3)))
wild_setups = pool(_some_of(WILD_SETUP, (0, 1, 2)))


@st.composite
def wild_cases(draw: st.DrawFn) -> Case:
    """A case that may contradict itself."""
    script = tuple(draw(st.lists(answers, min_size=2, max_size=4)))
    return Case(script, settings=draw(wild_settings), setup=draw(wild_setups))


@st.composite
def cases(draw: st.DrawFn, aim: Reason | None) -> Case:
    """A case that can be built; one with an aim is likely to end so."""
    settings, setup = dict(draw(random_settings)), dict(draw(random_setups))
    script = tuple(draw(st.lists(answers, min_size=5, max_size=9)))
    hooks, checks, acts = draw(surroundings)
    if aim is not None:
        wanted, needed, first = AIMS[aim]
        if aim in OTHER_WAYS and draw(st.booleans()):
            wanted, first = OTHER_WAYS[aim]
        settings, setup = settings | wanted, setup | needed
        at = draw(st.sampled_from([0, 0, 1]))
        script = (*script[:at], *first, *script[at:])
    if "output" not in setup:
        settings.pop("reflection", None)
    if settings.get("soft_limit", 0) > settings.get("hard_limit", 99):
        del settings["soft_limit"]
    if settings.get("on_limit") != "callback" and "hard_limit" not in settings:
        setup.pop("callback", None)
    return Case(
        script=script,
        settings=settings,
        setup=setup,
        hooks=hooks,
        checks=checks,
        acts=acts,
        given=draw(st.sampled_from(["text", "conversation", "begun"])),
        afterwards=draw(st.sampled_from(["stop", "again", "again", "resume", "resume"])),
    )
