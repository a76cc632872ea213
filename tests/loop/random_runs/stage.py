"""Plays a case: real loops, tools in real threads, a clock that only work moves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.errors import (
    ContextExceededError,
    InfrastructureError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    ReplayMissError,
)
from harness.loop.engine import Loop
from harness.loop.text_protocols import PROTOCOLS
from harness.protocols import StopTest
from harness.providers.scripted import Scripted
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import (
    Block,
    Message,
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    VendorBlock,
)
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Blocked, Signal, Suspend
from harness.schema.suite import Price, Skill
from harness.schema.trajectory import Event, SuspendedRun, Trajectory
from harness.tools.registry import Registry
from harness.values import Effect, ModelRequest, ToolOutcome
from tests.loop.random_runs.cases import Case, Said
from tests.loop.random_runs.hooks import make_check, make_hook
from tests.loop.support import FunctionTool, long_enough, output
from tests.providers.lookalikes.anthropic import thinking

PRICE = Price(input=1e6, output=1e6, cache_write=1e6, cache_read=1e6)
"""A dollar a token."""
MODEL_S, TOOL_S = 0.4, 0.3
"""What a model call and a tool call take on the clock of a case."""


@dataclass(frozen=True)
class ModelCalled:
    """A model call as the provider saw it."""

    request: ModelRequest
    answer: ModelTurn | Exception
    at_s: float


@dataclass(frozen=True)
class ToolCalled:
    """A tool call as the tool saw it."""

    name: str
    arguments: JsonObject
    writes: tuple[Effect, ...]


@dataclass
class Ran:
    """One run, with all that could be seen of it from outside."""

    given: Sequence[Message]
    before: Sequence[Message] = ()
    """The conversation it goes on with."""
    trajectory: Trajectory = field(init=False)
    started_s: float = 0
    model_calls: list[ModelCalled] = field(default_factory=list)
    tool_calls: list[ToolCalled] = field(default_factory=list)
    cancelled_at: int | None = None
    """How many events there were when the cancel came."""
    paused_at: list[int] = field(default_factory=list)
    """How many events there were when a pause was asked for."""
    resumes: Ran | None = None
    """The suspended run that it goes on with."""


class Stage:
    """One case as it is played; everything that happens twice happens the same way."""

    def __init__(
        self,
        case: Case,
        *,
        stream: bool = False,
        iterate: bool = False,
        through_json: bool = False,
    ) -> None:
        """Take a case, and how to play it.

        Args:
            case: What happens.
            stream: Have answers streamed.
            iterate: Run with `Loop.stream`.
            through_json: Resume suspended runs from the text of a file.
        """
        self.case = case
        self.iterate = iterate
        self.through_json = through_json
        self.now = 0.0
        self.lock = threading.Lock()
        self.running: list[str] = []
        self.together: list[tuple[str, ...]] = []
        """Each moment at which more than one tool was running."""
        self.moments = 0
        self.acts = dict(case.acts)
        self.at_moment: dict[int, Callable[[], None]] = {}
        self.kept: list[Event] = []
        self.ran: list[Ran] = []
        self.provider = Scripted(self._answers())
        self.registry = Registry(self._tools())
        self.loop = self._loop(stream)

    # What happens around the loop.

    def moment(self, *, cancels: bool = True) -> None:
        """Something happened; now and then something else happens then."""
        self.moments += 1
        self.at_moment.get(self.moments, nothing)()
        act = self.acts.get(self.moments, "")
        if "cancel" in act and not cancels:
            return
        match act:
            case "cancel":
                self.cancel()
            case "cancel_elsewhere":
                elsewhere(self.cancel)
            case "inject":
                self.loop.inject("By the way.")
            case "inject_elsewhere":
                elsewhere(lambda: self.loop.inject("By the way."))
            case "pause" | "pause_and_cancel":
                self.pause(act)
            case "raise":
                raise RuntimeError("nobody expects this")

    def cancel(self) -> None:
        if self.ran[-1].cancelled_at is None:
            self.ran[-1].cancelled_at = len(self.kept)
        self.loop.cancel("enough")

    def pause(self, reason: str) -> None:
        self.ran[-1].paused_at.append(len(self.kept))
        self.loop.pause(reason)

    def observe(self, event: Event) -> None:
        if event.kind == "model_delta":
            return
        self.kept.append(event)
        if event.kind == "paused":
            goes_on = event.data["reason"] != "pause_and_cancel"
            elsewhere(self.loop.resume if goes_on else self.cancel)
        # By then the ending is decided.
        is_over = event.kind == "run_completed" or event.data.get("point") == "after_run"
        self.moment(cancels=not is_over)

    # The model.

    def _answers(self) -> Iterator[ModelTurn | Exception]:
        fallback = Said('{"result": "long enough"}')
        for place in range(200):
            said = self.case.script[place] if place < len(self.case.script) else fallback
            answer = self._answer(said, place)
            at_s, self.now = self.now, self.now + MODEL_S
            self.ran[-1].model_calls.append(ModelCalled(self.provider.requests[-1], answer, at_s))
            try:
                self.moment()
            except RuntimeError as error:
                answer = error
                self.ran[-1].model_calls[-1] = replace(self.ran[-1].model_calls[-1], answer=error)
            yield answer

    def _answer(self, said: Said, place: int) -> ModelTurn | Exception:
        if said.failure is not None:
            return FAILURES[said.failure]
        calls = [
            ToolCall(id="same" if said.same_ids else f"{place}.{at}", name=name, arguments=raw)
            for at, (name, raw) in enumerate(said.calls)
        ]
        content: list[Block] = []
        if said.thinks:
            data = thinking("hm")
            content.append(VendorBlock(dialect="anthropic-messages", data={**data}))
        protocol = self.case.settings.get("text_protocol")
        if protocol is None:
            content += [Text(text=said.text)] if said.text else []
            content += calls
        elif text := as_text(protocol, said.text, calls):
            content.append(Text(text=text))
        natural = StopReason.TOOL_USE if calls and protocol is None else StopReason.END_TURN
        return ModelTurn(content=tuple(content), stop=said.stop or natural, usage=said.usage)

    # The tools.

    def _tools(self) -> list[FunctionTool]:
        return [
            self._tool("good", "fine"),
            self._tool("alone", "done alone", sequential=True),
            self._tool("slow", "slow"),
            self._tool("strict", "fine", {"type": "object", "required": ["path"]}),
            self._tool("writes", "written", writes=True),
            self._tool("raising", RuntimeError("boom")),
            self._tool("failing", ToolOutcome("no", "failed")),
            self._tool("late", ToolOutcome("too late", "timed_out")),
            self._tool("says", {"success": False}),
            self._tool("odd", {"odd": float("nan")}),
            self._tool("finish", "finished"),
            self._tool("signals", Signal(name="enough", data={"b": 1, "a": None})),
            self._tool("suspends", Suspend(correlation_id="c-1", data=["why"])),
            self._tool("blocks", Blocked(reason="no way")),
            self._tool("injects", lambda: self.loop.inject("From a tool."), sequential=True),
            self._tool("pauses", lambda: self.pause("a tool"), sequential=True),
            self._tool("cancels", self.cancel, sequential=True),
            self._tool("registers", self._register, sequential=True),
            self._tool("infra", InfrastructureError("no disk")),
            self._tool("commands", "ran", effects=(Effect("command", "ls -l | rm x"),)),
            self._tool("fetches", "got", effects=(Effect("network", "api.example.org"),)),
            self._tool("silent", "hush", effects=None),
        ]

    def _register(self) -> None:
        if all(spec.name != "extra" for spec in self.registry.specs()):
            self.registry.register(self._tool("extra", "more"))

    def _tool(
        self,
        name: str,
        gives: Any,
        schema: JsonObject | None = None,
        *,
        sequential: bool = False,
        writes: bool = False,
        effects: Sequence[Effect] | None = (),
    ) -> FunctionTool:
        stage = self

        class Tool(FunctionTool):
            def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
                target = str(arguments.get("path", "/workspace/c"))
                return (Effect("write", target, lines=2),) if writes else effects

        def function(arguments: JsonObject) -> Json | ToolOutcome:
            written = tuple(tool.effects(arguments) or ()) if writes else ()
            stage._begins(ToolCalled(name, arguments, written), waits=name == "slow")
            try:
                if isinstance(gives, Exception):
                    raise gives
                answer: Json | ToolOutcome = gives() if callable(gives) else gives
                return answer
            finally:
                stage._ends(name)

        tool = Tool(name, function, schema, sequential=sequential)
        return tool

    def _begins(self, called: ToolCalled, *, waits: bool) -> None:
        with self.lock:
            self.ran[-1].tool_calls.append(called)
            self.now += TOOL_S
            self.running.append(called.name)
            if len(self.running) > 1:
                self.together.append(tuple(self.running))
        if waits:
            threading.Event().wait(0.001)

    def _ends(self, name: str) -> None:
        with self.lock:
            self.running.remove(name)

    # The loop.

    def _loop(self, stream: bool) -> Loop:
        case, has = self.case, self.case.setup
        settings = {**case.settings, "stream": stream}
        hooks = [make_hook("acts", self), *(make_hook(name, self) for name in case.hooks)]
        return Loop(
            self.provider,
            model="m",
            tools=self.registry,
            output=OUTPUTS[has.get("output", "none")],
            config=LoopConfig.model_validate(settings),
            price=None if "price" in has else PRICE,
            terminal_tools=(has["terminal"],) if "terminal" in has else (),
            terminal_check=TERMINAL_CHECKS[has["check"]] if "check" in has else None,
            on_iteration_limit=CALLBACKS[has["callback"]] if "callback" in has else None,
            stop_conditions={
                name: test
                for name, test in STOP_TESTS.items()
                if name in case.settings.get("stop_when", ())
            },
            hooks=hooks,
            checks=[make_check(name) for name in case.checks],
            skills=SKILLS if "skills" in has else (),
            active_skills=() if has.get("skills", "list") == "list" else (has["skills"],),
            recall=Memory(has["recall"]) if "recall" in has else None,
            observers=[self.observe, *([fall_over_events] if "observer" in has else [])],
            clock=lambda: self.now,
        )

    def play(self) -> list[Ran]:
        """Run, and go on in the way the case says."""
        given = GIVEN[self.case.given]
        self._run(given, ())
        for _ in range(2):
            last = self.ran[-1].trajectory
            if self.case.afterwards == "resume" and last.suspended is not None:
                self._resume(last.suspended)
            elif self.case.afterwards == "again" and len(self.ran) < 2:
                kept = self.case.settings.get("history") == "continue"
                self._run(GIVEN["text"], last.messages if kept else ())
        return self.ran

    def _run(self, given: str | Sequence[Message], before: Sequence[Message]) -> None:
        messages = [user(given)] if isinstance(given, str) else list(given)
        copies = [message.model_copy(deep=True) for message in messages]
        self._begin(Ran(copies, before, started_s=self.now))
        mine = given if isinstance(given, str) else messages
        if self.iterate:
            *_, last = self.loop.stream(mine, system="Be brief.", run_id="random")
            self.ran[-1].trajectory = last.payload
        else:
            self.ran[-1].trajectory = self.loop.run(mine, system="Be brief.", run_id="random")
        assert messages == copies

    def _resume(self, state: SuspendedRun) -> None:
        if self.through_json:
            state = SuspendedRun.model_validate_json(state.model_dump_json())
        begun_s = self.now - state.elapsed_s
        self._begin(Ran([user("Here.")], state.messages, started_s=begun_s, resumes=self.ran[-1]))
        self.ran[-1].trajectory = self.loop.resume_suspended(state, "Here.")

    def _begin(self, ran: Ran) -> None:
        self.kept.clear()
        self.ran.append(ran)


class Memory:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def search(self, query: str, limit: int) -> Sequence[str]:
        if self.kind == "raises":
            raise RuntimeError("forgotten")
        return [f"{query}?"] * (limit + 1)


def nothing() -> None:
    pass


def user(text: str) -> Message:
    return Message(role="user", content=(Text(text=text),))


def elsewhere(function: Any) -> None:
    """Call it in another thread, and wait until it is done."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def preview(value: Json) -> str:
    assert isinstance(value, dict)
    if value.get("result") == "x":
        raise ValueError("too short to be shown")
    return "Preview."


def fall_over(_: object) -> bool:
    raise RuntimeError("fell over")


STOP_TESTS: dict[str, StopTest] = {
    "third": lambda so_far: so_far.iterations >= 3,
    "raises": fall_over,
}


def fall_over_events(event: Event) -> None:
    if event.kind != "model_delta":
        fall_over(event)


def as_text(protocol: str, text: str, calls: Sequence[ToolCall]) -> str:
    """What a model writes that speaks a text protocol."""
    if protocol != "terminus2" or not calls:
        return "\n".join([text, *(PROTOCOLS[protocol].render_call(call) for call in calls)])
    try:
        commands = [
            {"name": call.name, "arguments": json.loads(call.arguments or "{}")}
            for call in calls
            if call.name != "task_complete"
        ]
    except ValueError:
        return text + "{bad"
    done = len(commands) < len(calls)
    answer = {"analysis": text, "plan": "", "commands": commands, "task_complete": done}
    return json.dumps(answer)


OUTPUTS = {
    "none": None,
    "declared": output(long_enough, handler=preview),
    "bare": output(long_enough),
    **{name: output(name=name) for name in ("good", "submit", "task_complete")},
}
GIVEN: dict[str, str | Sequence[Message]] = {
    "text": "Do it.",
    "conversation": (
        user("Hello."),
        Message(role="assistant", content=(Text(text="Hello. What is the task?"),)),
        user("Do it."),
    ),
    "begun": (user("Do it."), Message(role="assistant", content=(Text(text="I begin with"),))),
}
FAILURES: dict[str, Exception] = {
    "down": ModelCallError("down"),
    "busy": OverloadedError(""),
    "malformed": MalformedAnswerError("what?"),
    "bug": KeyError("choices"),
    "miss": ReplayMissError("never recorded"),
    "context": ContextExceededError("too long"),
    "infra": InfrastructureError("no network"),
}
TERMINAL_CHECKS: dict[str, Any] = {
    "signals": lambda turn: "checked" if len(turn) > 2 else None,
    "raises": fall_over,
    "wrong": lambda turn: 3 if len(turn) > 3 else None,
}
CALLBACKS: dict[str, Any] = {
    "signals": lambda: Signal(name="limit", data=1),
    "nothing": lambda: None,
    "raises": lambda: fall_over(None),
    "wrong": lambda: 3,
}
SKILLS = (
    Skill(name="narrow", description="N.", instructions="Write.", disallowed_tools=("silent",)),
    Skill(name="other", description="O.", instructions="Other."),
)
