"""Hooks, approvers and checks that do what such functions do, and what they should not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from harness.protocols import Check, Hook
from harness.schema.messages import Message, Text
from harness.values import (
    Approval,
    IterationPlan,
    Judgement,
    ModelRequest,
    PendingCall,
    SkipModel,
    SkipTool,
    ToolOutcome,
)


class Moments(Protocol):
    def moment(self, *, cancels: bool = True) -> None: ...


def make_hook(name: str, stage: Moments) -> Hook:
    """A hook of this name; one that counts has its own count."""
    if name == "acts":
        return _acting(stage)
    functions: dict[str, Any] = HOOKS[name]()
    return Hook(name=name, **functions)


def make_check(name: str) -> Check:
    """A check that has something to say of every second call."""
    turn = _every(2)

    def check(call: PendingCall) -> Judgement:
        if not turn():
            return Judgement("allowed")
        if name == "raises":
            raise RuntimeError("cannot say")
        if name == "wrong":
            return "no judgement"  # type: ignore[return-value]
        verdict = {"denies": "denied", "escalates": "escalated", "blocks": "blocked"}.get(name)
        return Judgement(verdict or "warned", "because")  # type: ignore[arg-type]

    return check


def _acting(stage: Moments) -> Hook:
    """Changes nothing; things happen while it is asked."""

    def moment(*_: object) -> None:
        stage.moment()

    def last_moment(*_: object) -> None:
        stage.moment(cancels=False)

    return Hook(
        name="acts",
        before_run=moment,
        after_run=last_moment,
        before_iteration=moment,
        before_model=moment,
        after_model=moment,
        before_tool=moment,
        approve_tool=moment,
        after_tool=moment,
        pause_check=moment,
    )


def _every(number: int) -> Callable[[], bool]:
    count = 0

    def is_turn() -> bool:
        nonlocal count
        count += 1
        return count % number == 0

    return is_turn


def _modifies() -> dict[str, Any]:
    return {"before_tool": lambda call: {**call.arguments, "path": "/workspace/a"}}


def _skips() -> dict[str, Any]:
    skipped = ("good", "finish")
    return {"before_tool": lambda call: SkipTool("skipped") if call.name in skipped else None}


def _raises() -> dict[str, Any]:
    def fall(*_: object) -> None:
        raise RuntimeError("fell")

    points = ("before_run", "after_run", "before_iteration", "before_model", "after_model")
    return dict.fromkeys([*points, "before_tool", "pause_check"], fall)


def _approves() -> dict[str, Any]:
    return {"approve_tool": lambda call: True}


def _rejects() -> dict[str, Any]:
    turn = _every(2)
    return {"approve_tool": lambda call: Approval(not turn(), "I said no")}


def _approver_raises() -> dict[str, Any]:
    turn = _every(3)
    return {"approve_tool": lambda call: 1 // 0 if turn() else None}


def _approver_modifies() -> dict[str, Any]:
    turn = _every(2)
    return {
        "approve_tool": lambda call: Approval(
            True, arguments={"path": "/workspace/d"} if turn() else {}
        )
    }


def _replaces() -> dict[str, Any]:
    turn = _every(2)
    return {"after_tool": lambda call, outcome: "replaced" if turn() else None}


def _replaces_whole() -> dict[str, Any]:
    turn = _every(2)
    return {
        "after_tool": lambda call, outcome: (
            replace(outcome, status="failed") if turn() else ToolOutcome("whole")
        )
    }


def _after_raises() -> dict[str, Any]:
    return {"after_tool": lambda call, outcome: 1 // 0}


def _appends() -> dict[str, Any]:
    return {"before_iteration": lambda plan: replace(plan, append_user="Mind the time.")}


def _narrows() -> dict[str, Any]:
    def narrow(plan: IterationPlan) -> IterationPlan:
        return replace(plan, model="other", tools=plan.tools[1::2])

    return {"before_iteration": narrow}


def _shortens() -> dict[str, Any]:
    first = Message(role="user", content=(Text(text="Anew."),))

    def shorten(plan: IterationPlan) -> IterationPlan:
        return replace(plan, messages=(first,), append_user="And this.")

    return {"before_iteration": shorten}


def _canned() -> dict[str, Any]:
    turn = _every(3)
    return {"before_model": lambda request: SkipModel("canned") if turn() else None}


def _warms() -> dict[str, Any]:
    def warm(request: ModelRequest) -> ModelRequest:
        return replace(request, temperature=0.5)

    return {"before_model": warm}


def _pauses() -> dict[str, Any]:
    return {"pause_check": lambda iteration: "look" if iteration == 2 else None}


def _begins() -> dict[str, Any]:
    first = Message(role="user", content=(Text(text="From a hook."),))
    return {"before_run": lambda messages: [first, *messages[1:]]}


def _wrong() -> dict[str, Any]:
    points = ("before_run", "after_run", "before_iteration", "before_model", "before_tool")
    return dict.fromkeys([*points, "after_tool", "pause_check"], lambda *_: 3)


def _ends() -> dict[str, Any]:
    return {"after_run": lambda trajectory: trajectory.model_copy(update={"error": "by a hook"})}


HOOKS: dict[str, Callable[[], dict[str, Any]]] = {
    "modifies": _modifies,
    "skips": _skips,
    "raises": _raises,
    "approves": _approves,
    "rejects": _rejects,
    "approver_raises": _approver_raises,
    "approver_modifies": _approver_modifies,
    "replaces": _replaces,
    "replaces_whole": _replaces_whole,
    "after_raises": _after_raises,
    "appends": _appends,
    "narrows": _narrows,
    "shortens": _shortens,
    "canned": _canned,
    "warms": _warms,
    "pauses": _pauses,
    "begins": _begins,
    "wrong": _wrong,
    "ends": _ends,
}
