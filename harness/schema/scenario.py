"""Scenario files: scripted model turns, and what must come of them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from harness import errors
from harness.schema.loop_config import SUBMIT_TOOL, Budget
from harness.schema.messages import StopReason, Usage
from harness.schema.names import Name
from harness.schema.presets import PresetName
from harness.schema.record import Json, JsonObject, Record
from harness.schema.scenario_expected import Expected
from harness.schema.scenario_hook import ScenarioHook

CallbackName = Literal[
    "on_attempt_start",
    "on_attempt_end",
    "on_tool_call",
    "on_tool_result",
    "on_validation_start",
    "on_validation_end",
    "on_validation_failure",
    "on_success",
    "on_failure",
]


def exception_class(name: str) -> type[Exception] | None:
    """A built-in exception, or one of this package's, by its name."""
    found = getattr(builtins, name, None) or getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _is_exception(name: str) -> str:
    found = exception_class(name)
    try:
        if found is not None and found("text"):
            return name
    except TypeError:
        pass
    raise PydanticCustomError(
        "exception", "no exception that takes a text; name a built-in one, as in ConnectionError"
    )


class StartMessage(Record):
    """A message of the conversation that the run starts with."""

    role: Literal["user", "assistant"]
    content: str


class ScriptedCall(Record):
    """A tool call in a scripted turn."""

    name: str
    id: str = Field(min_length=1)
    args: JsonObject | str = Field(default_factory=dict)
    """Text is raw JSON as the model wrote it, maybe malformed."""


class ScriptedTurn(Record):
    """What the model answers to one call: an answer, a failure, or the turn before it again."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason | None = None
    """None: `tool_use` where there are calls, else `end_turn`."""
    usage: Usage | None = Usage(input=10, output=5)
    """None reports nothing."""
    raises: str | None = None
    """The model call fails with this text."""
    exception: Annotated[str, AfterValidator(_is_exception)] = "ModelCallError"
    """Class of the failure."""
    repeat: Literal[True] | None = None
    """The turn before this one, for ever, with the same call ids."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = self.model_fields_set
        answer = given & {"text", "calls", "stop", "usage"}
        kinds = [kind for kind in ("raises", "repeat") if kind in given]
        is_null = any(getattr(self, kind) is None for kind in kinds)
        if len(kinds) + bool(answer) != 1 or is_null:
            raise PydanticCustomError(
                "turn", "a turn is an answer (text, calls, stop, usage), or raises, or repeat"
            )
        if "exception" in given and "raises" not in given:
            raise PydanticCustomError("turn", "exception goes with raises")
        return self


class SuspendBehaviour(Record):
    """What a tool that asks to suspend gives."""

    correlation_id: str
    text: str = ""
    """What the model sees."""
    data: Json = None


_WAYS = ("returns", "raises", "fails", "signal", "suspend", "blocked", "echo")


class Behaviour(Record):
    """What one call of a tool does: exactly one way, maybe late."""

    model_config = ConfigDict(allow_inf_nan=False)

    returns: Json = None
    raises: str | None = None
    fails: str | None = None
    """A failed result, not an exception."""
    signal: str | None = Field(default=None, min_length=1)
    """A result that carries a signal of this name."""
    data: Json = None
    """What the signal carries."""
    suspend: SuspendBehaviour | None = None
    blocked: str | None = None
    """The run cannot go on, for this reason."""
    echo: Literal[True] | None = None
    """The arguments come back as JSON."""
    sleep_s: float = Field(default=0, ge=0)
    """Time it takes first."""
    registers: tuple[str, ...] = ()
    """Hidden tools that are offered from now on."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = self.model_fields_set
        ways = [way for way in self.ways() if way in given]
        is_null = any(getattr(self, way) is None for way in ways if way != "returns")
        if len(ways) != 1 or is_null:
            raise PydanticCustomError(
                "behaviour", "give exactly one of {ways}", {"ways": ", ".join(self.ways())}
            )
        if "data" in given and "signal" not in given:
            raise PydanticCustomError("behaviour", "data goes with signal")
        return self

    @classmethod
    def ways(cls) -> tuple[str, ...]:
        """Keys of which one is given."""
        return _WAYS


class ScenarioTool(Behaviour):
    """A tool that behaves as written down."""

    sequence: tuple[Behaviour, ...] = ()
    """What it does call by call; the last one repeats."""
    parameters: JsonObject = Field(default_factory=dict)
    """JSON Schema of its arguments; `{}` takes anything."""
    sequential: bool = False
    """Never runs at the same time as another call of its turn."""

    @classmethod
    def ways(cls) -> tuple[str, ...]:
        """Keys of which one is given."""
        return (*_WAYS, "sequence")

    @model_validator(mode="after")
    def _sequence_holds_all(self) -> Self:
        if "sequence" in self.model_fields_set:
            if not self.sequence:
                raise PydanticCustomError("behaviour", "sequence needs at least one behaviour")
            if self.model_fields_set & {"sleep_s", "registers"}:
                raise PydanticCustomError(
                    "behaviour", "with a sequence, sleep_s and registers go into its entries"
                )
        return self


class ScenarioOutput(Record):
    """The output tool."""

    name: str = Field(default="output", min_length=1)
    schema_: JsonObject = Field(alias="schema")
    validators: tuple[JsonObject, ...] = ()
    """Run in order after the schema: `min_length` or `equals`."""
    reflection_handler: JsonObject | None = None
    """`returns`, `raises` or `rejects`."""


class ScenarioSkill(Record):
    """A skill by its name."""

    description: str
    instructions: str
    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()


class ScenarioGovernance(Record):
    """What is said of calls before they run, by tool."""

    deny: dict[str, str] = Field(default_factory=dict)
    """Tool -> reason."""
    approval: dict[str, Literal["approve", "reject", "raise", "modify"]] = Field(
        default_factory=dict
    )
    modified_args: dict[str, JsonObject] = Field(default_factory=dict)
    """Tool -> arguments that an approver puts in place of the model's."""

    @model_validator(mode="after")
    def _arguments_fit(self) -> Self:
        modified = {name for name, way in self.approval.items() if way == "modify"}
        if modified != set(self.modified_args):
            raise PydanticCustomError(
                "governance",
                "modified_args must hold exactly the tools whose approval is modify",
            )
        return self


class ScenarioCancel(Record):
    """When the run is cancelled."""

    when: Literal["before_start", "in_tool", "in_model", "before_iteration"]
    at: int | None = Field(default=None, ge=1)
    """Iteration of the run; None is the first in which it can be."""

    @model_validator(mode="after")
    def _start_has_no_iteration(self) -> Self:
        if self.when == "before_start" and self.at is not None:
            raise PydanticCustomError("cancel", "before_start takes no at")
        return self


class Injection(Record):
    """User text that comes from outside while an iteration is running."""

    at: int = Field(ge=1)
    text: str


class ResumeWith(Record):
    """How a suspended run is taken up again."""

    text: str


class Scenario(Record):
    """The smallest task there is: the model's turns are written down."""

    id: str = Field(pattern=Name)
    """Unique within the suite; it becomes the task's name."""
    title: str = ""
    preset: PresetName | None = None
    """None: the run's, else `default`."""
    config: JsonObject = Field(default_factory=dict)
    """Settings of the loop that differ from the preset."""
    wire_format: Literal["anthropic", "openai"] = "anthropic"
    """Layout of the scripted provider's requests."""
    stream: bool = False
    """Run through the streaming entry point."""
    messages: tuple[StartMessage, ...] = Field(
        default=(StartMessage(role="user", content="Do the task."),), min_length=1
    )
    system: str | None = None
    output: ScenarioOutput | None = None
    terminal_tools: tuple[str, ...] = ()
    signals: dict[str, str] = Field(default_factory=dict)
    """Tool -> signal that the terminal check returns once it has succeeded."""
    on_iteration_limit: str | None = Field(default=None, min_length=1)
    """Signal of the limit callback; None is no callback."""
    skills: dict[str, ScenarioSkill] = Field(default_factory=dict)
    active_skills: tuple[str, ...] = ()
    tools: dict[str, ScenarioTool] = Field(default_factory=dict)
    hidden_tools: dict[str, ScenarioTool] = Field(default_factory=dict)
    """Tools that are there only once another one has registered them."""
    governance: ScenarioGovernance = ScenarioGovernance()
    budget: Budget | None = None
    hooks: tuple[ScenarioHook, ...] = ()
    callbacks: dict[CallbackName, Literal["raises"]] = Field(default_factory=dict)
    cancel: ScenarioCancel | None = None
    inject: tuple[Injection, ...] = ()
    turns: tuple[ScriptedTurn, ...] = ()
    runs: int = Field(default=1, ge=1)
    """Runs that one loop makes; what is expected is about the last."""
    resume: ResumeWith | None = None
    """Taking the run up again once it has ended suspended."""
    expect: Expected

    @model_validator(mode="after")
    def _repeat_is_last(self) -> Self:
        places = [place for place, turn in enumerate(self.turns) if turn.repeat]
        if places and places != [len(self.turns) - 1]:
            raise PydanticCustomError("turns", "turns: repeat must be the last turn")
        if places == [0]:
            raise PydanticCustomError("turns", "turns: repeat needs a turn before it")
        return self

    @model_validator(mode="after")
    def _can_be_cancelled(self) -> Self:
        if self.cancel is not None and self.cancel.when == "in_tool" and not self.tools:
            raise PydanticCustomError(
                "cancel", "cancel: in_tool cannot happen: there are no tools; add one"
            )
        return self

    @model_validator(mode="after")
    def _hidden_tools_appear(self) -> Self:
        if twice := sorted(set(self.tools) & set(self.hidden_tools)):
            raise PydanticCustomError(
                "tools", "'{name}' is both in tools and in hidden_tools", {"name": twice[0]}
            )
        all_registered = set()
        for name, tool in (*self.tools.items(), *self.hidden_tools.items()):
            for behaviour in (tool, *tool.sequence):
                for registered in behaviour.registers:
                    all_registered.add(registered)
                    if registered not in self.hidden_tools:
                        raise PydanticCustomError(
                            "tools",
                            "tool '{name}' registers '{registered}', which is not in hidden_tools",
                            {"name": name, "registered": registered},
                        )
        if never := sorted(set(self.hidden_tools) - all_registered):
            raise PydanticCustomError(
                "tools",
                "hidden_tools: '{name}' is never offered; another tool must name it in registers",
                {"name": never[0]},
            )
        return self

    @model_validator(mode="after")
    def _tools_exist(self) -> Self:
        everywhere = {*self.tools, *self.hidden_tools, SUBMIT_TOOL}
        if self.output is not None:
            everywhere.add(self.output.name)
        named: dict[str, Iterable[str]] = {
            "signals": self.signals,
            "governance.deny": self.governance.deny,
            "governance.approval": self.governance.approval,
            "hooks": [hook.tool for hook in self.hooks if hook.tool is not None],
        }
        for key, names in named.items():
            for name in names:
                if name not in everywhere:
                    raise PydanticCustomError(
                        "tools",
                        "{key} names '{name}', which is no tool of the scenario",
                        {"key": key, "name": name},
                    )
        return self
