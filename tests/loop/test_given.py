"""What a loop is given that it cannot take is refused at once, in a line that says what to give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.errors import ConfigurationError
from harness.loop.engine import Loop
from harness.protocols import Hook, OutputSpec
from harness.providers.scripted import Scripted, turn
from harness.schema.messages import Message, Text, ToolCall, ToolResult, ToolSpec
from harness.schema.signals import Suspend
from harness.schema.suite import Skill
from harness.schema.trajectory import SuspendedRun
from harness.tools.registry import Registry
from harness.values import Approval, Effect, Judgement, ToolOutcome
from tests.loop.support import RESULT_SCHEMA, call, make, returns

DONE = turn("done")
SPEC = ToolSpec(name="output", description="", parameters=RESULT_SCHEMA)
SKILL = Skill(name="careful", description="Take care.", instructions="Look twice.")


async def later(*_: object) -> None:
    raise AssertionError("nothing may run")


class Later:
    """An object that is called like a coroutine function."""

    async def __call__(self, *_: object) -> None:
        raise AssertionError("nothing may run")


class AsyncProvider:
    async def complete(self, request: object, on_delta: object = None) -> None:
        raise AssertionError("nothing may run")


ARGUMENTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"model": 5}, ["model = 5", "as text"]),
    (
        {"config": {"max_iterations": 3}},
        ["config = {'max_iterations': 3}", "LoopConfig(**settings"],
    ),
    ({"config": None}, ["config = None", "LoopConfig(**settings)"]),
    ({"tools": [returns("look", "")]}, ["tools = [", "Registry([", "harness.agents.Agent"]),
    ({"tools": Registry}, ["tools = <class", "Registry([…])"]),
    ({"output": dict}, ["output = <class 'dict'>", "OutputSpec", "harness.agents.Agent"]),
    ({"output": OutputSpec(SPEC, (later,))}, ["output.validators[0]", "plain function"]),  # type: ignore[arg-type]
    ({"output": OutputSpec(SPEC, len)}, ["output.validators = ", "list of functions"]),  # type: ignore[arg-type]
    ({"output": OutputSpec(SPEC, (), later)}, ["output.reflection_handler", "plain function"]),  # type: ignore[arg-type]
    ({"temperature": "hot"}, ["temperature = 'hot'", "a number"]),
    ({"temperature": True}, ["temperature = True", "a number"]),
    ({"price": 3.0}, ["price = 3.0", "Price(input=…, output=…)"]),
    ({"hooks": Hook()}, ["hooks = Hook(", "give a list of Hook"]),
    ({"hooks": [len]}, ["hooks = [", "give a list of Hook"]),
    ({"hooks": [Hook(name=5)]}, ["hooks[0].name = 5", "a text"]),  # type: ignore[arg-type]
    ({"hooks": [Hook(before_run=3)]}, ["hook 'hook': before_run = 3", "plain function"]),  # type: ignore[arg-type]
    ({"hooks": [Hook("h", approve_tool=later)]}, ["'h': approve_tool", "plain function"]),  # type: ignore[arg-type]
    ({"hooks": [Hook("h", after_tool=Later())]}, ["'h': after_tool", "plain function"]),  # type: ignore[arg-type]
    ({"checks": len}, ["checks = ", "give a list of functions"]),
    ({"checks": ["x"]}, ["checks[0] = 'x'", "plain function"]),
    ({"checks": [later]}, ["checks[0] = ", "plain function"]),
    ({"observers": print}, ["observers = ", "give a list of functions"]),
    ({"observers": [None]}, ["observers[0] = 'None'", "plain function"]),
    ({"observers": [later]}, ["observers[0] = ", "plain function"]),
    ({"skills": ["careful"]}, ["skills = ['careful']", "list of Skill"]),
    ({"terminal_tools": "look"}, ["terminal_tools = 'look'", "list of names"]),
    ({"active_skills": "careful"}, ["active_skills = 'careful'", "list of names"]),
    ({"active_skills": [SKILL]}, ["active_skills = [Skill(", "list of names"]),
    ({"stop_conditions": [len]}, ["stop_conditions = [", "a mapping of names"]),
    ({"stop_conditions": {"a": 1}}, ["stop_conditions['a'] = 1", "plain function"]),
    ({"stop_conditions": {"a": later}}, ["stop_conditions['a'] = ", "plain function"]),
    ({"terminal_check": "x"}, ["terminal_check = 'x'", "plain function"]),
    ({"terminal_check": later}, ["terminal_check = ", "plain function"]),
    ({"on_iteration_limit": later}, ["on_iteration_limit = ", "plain function"]),
    ({"recall": ["x"]}, ["recall = ['x']", "search(query, limit)"]),
    ({"redact": 5}, ["redact = 5", "plain function"]),
    ({"clock": 5}, ["clock = 5", "plain function"]),
    ({"provider": "openai"}, ["provider = 'openai'", "complete(request, on_delta)"]),
    ({"provider": Scripted}, ["provider = <class", "complete(request, on_delta)"]),
    ({"provider": AsyncProvider()}, ["provider = ", "plain method complete"]),
]


@pytest.mark.parametrize(("arguments", "says"), ARGUMENTS)
def test_a_wrong_argument_is_refused_with_its_name_and_what_to_give(
    arguments: dict[str, Any], says: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Loop(**{"provider": Scripted([DONE]), "model": "m", **arguments})
    text = str(refused.value)
    assert [words for words in says if words not in text] == [], text
    assert "\n" not in text


VALUES: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
    (Approval, ("no",), "Approval.approved = 'no': give True or False"),
    (Approval, (None,), "Approval.approved = None"),
    (Approval, (True, 5), "Approval.reason = 5"),
    (Approval, (True, "", ["x"]), "Approval.arguments = "),
    (Judgement, ("deny",), "Judgement.verdict = 'deny': give one of allowed, warned, denied"),
    (Judgement, (True,), "Judgement.verdict = True"),
    (Judgement, ("allowed", 5), "Judgement.reason = 5"),
    (Effect, ("wirte", "x"), "Effect.kind = 'wirte': give one of read, write, command, network"),
    (Effect, ("write", 5), "Effect.target = 5"),
    (Effect, ("write", "x", "many"), "Effect.lines = 'many'"),
    (ToolOutcome, ("x", "odd"), "ToolOutcome.status = 'odd': give one of ok, failed, raised"),
    (ToolOutcome, (5,), "ToolOutcome.content = 5"),
    (ToolOutcome, ("x", "ok", 0.0, "suspend"), "ToolOutcome.asks = 'suspend'"),
]


@pytest.mark.parametrize(("kind", "arguments", "says"), VALUES)
def test_a_value_that_could_let_a_call_pass_by_mistake_cannot_be_made(
    kind: Callable[..., object], arguments: tuple[Any, ...], says: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        kind(*arguments)
    assert str(refused.value).startswith(says)


CALL = ToolCall(id="c1", name="look", arguments="{}")
RESULT = ToolResult(call_id="c1", name="look", content="seen")


def user(*blocks: Any) -> Message:
    return Message(role="user", content=blocks)


def assistant(*blocks: Any) -> Message:
    return Message(role="assistant", content=blocks)


TASK = user(Text(text="Look."))
NO_MESSAGES: list[tuple[Any, str]] = [
    (None, "give a text, or a list of Message objects: Message(role='user', content=(Text("),
    (["x"], "messages = ['x']: give a text, or a list of Message objects"),
    ([{"role": "user", "content": "x"}], "a list of Message objects"),
    (b"x", "messages = b'x': give a text"),
    ([], "messages is empty: give the task"),
    ([TASK, assistant(CALL)], "the tool call 'c1' has no result in the next turn"),
    ([TASK, assistant(CALL), TASK], "the tool call 'c1' has no result in the next turn"),
    ([TASK, assistant(CALL), assistant(), user(RESULT)], "the tool call 'c1' has no result"),
    ([user(RESULT)], "the result 'c1' answers no call of the turn before"),
    ([TASK, assistant(CALL), user(RESULT), assistant(), user(RESULT)], "the result 'c1' answers"),
]


@pytest.mark.parametrize(("messages", "says"), NO_MESSAGES)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_is_no_conversation_is_refused_before_the_run(
    messages: Any, says: str, streamed: bool
) -> None:
    loop, provider = make([DONE])
    with pytest.raises(ConfigurationError) as refused:
        list(loop.stream(messages)) if streamed else loop.run(messages)
    assert says in str(refused.value)
    assert provider.requests == []
    assert loop.run("Do it.").final_text == "done", "the loop is as good as new"


@pytest.mark.parametrize(
    "messages",
    [
        [TASK, assistant(CALL), user(RESULT, Text(text="And?"))],
        [TASK, assistant(CALL, CALL), user(RESULT, RESULT)],
        [TASK, assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)],
        (TASK,),
    ],
)
def test_a_whole_conversation_is_taken(messages: Sequence[Message]) -> None:
    loop, _ = make([DONE])
    assert loop.run(messages).final_text == "done"


WORDS: list[tuple[Callable[[Loop], object], str]] = [
    (lambda loop: loop.inject(5), "text = 5: give a text"),  # type: ignore[arg-type]
    (lambda loop: loop.pause(5), "reason = 5: give a text"),  # type: ignore[arg-type]
    (lambda loop: loop.cancel(None), "reason = None: give a text"),  # type: ignore[arg-type]
    (lambda loop: loop.run("x", system=5), "system = 5: give a text"),  # type: ignore[arg-type]
    (lambda loop: loop.run("x", run_id=5), "run_id = 5: give a text"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("say", "says"), WORDS)
def test_what_is_said_to_a_loop_must_be_text(say: Callable[[Loop], object], says: str) -> None:
    loop, _ = make([DONE])
    with pytest.raises(ConfigurationError, match=says):
        say(loop)
    assert loop.run("Do it.").final_text == "done"


def suspended() -> SuspendedRun:
    tool = returns("ask", "")
    tool.function = lambda _: Suspend(correlation_id="c")  # type: ignore[assignment,return-value]
    loop, _ = make([turn(calls=[call("c1", "ask")])], tools=[tool], suspend_reply=False)
    state = loop.run("Ask.").suspended
    assert state is not None
    return state


@pytest.mark.parametrize("state", [None, "{}", {}])
def test_only_a_suspended_run_can_be_resumed(state: Any) -> None:
    loop, _ = make([DONE])
    with pytest.raises(ConfigurationError, match=r"SuspendedRun\.model_validate_json\(text\)"):
        loop.resume_suspended(state, "yes")


def test_the_answer_to_a_suspended_run_must_be_text() -> None:
    loop, _ = make([DONE], tools=[returns("ask", "")])
    with pytest.raises(ConfigurationError, match="text = 5: give a text"):
        loop.resume_suspended(suspended(), 5)  # type: ignore[arg-type]
    assert loop.resume_suspended(suspended(), "yes").final_text == "done"


def test_a_suspended_run_that_called_tools_cannot_go_on_without_any() -> None:
    loop = Loop(Scripted([DONE]), model="m")
    with pytest.raises(ConfigurationError, match="has called ask, and this loop has no tools"):
        loop.resume_suspended(suspended(), "yes")
