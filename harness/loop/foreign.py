"""Asking the user's own tools and provider, whatever they give or raise."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from harness.errors import InfrastructureError, MalformedAnswerError, ReplayMissError, error_line
from harness.loop.endings import Ending
from harness.loop.given import is_list_of
from harness.protocols import ToolProvider
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import ModelTurn, ToolSpec
from harness.schema.record import JsonObject, storable
from harness.values import Effect, ToolInvocation, ToolOutcome

_LOG = logging.getLogger("harness.tools")

BreakOff = ReplayMissError | InfrastructureError


def specs_of(tools: ToolProvider | None) -> tuple[ToolSpec, ...] | Ending:
    """What is offered now, or the ending of a run that cannot know."""
    try:
        specs: object = tools.specs() if tools is not None else ()
        if not is_list_of(specs, ToolSpec):
            raise TypeError(f"specs() must give ToolSpecs, not {_kind(specs)}")
    except (ReplayMissError, InfrastructureError) as error:
        return broke_off(error)
    except Exception as error:  # noqa: BLE001 - a run has a result for every ending
        return Ending(TerminationReason.ERROR, f"the tools failed: {error_line(error)}")
    return tuple(specs)


def broke_off(error: BreakOff) -> Ending:
    """The ending of a run whose recording or machine failed."""
    missed = isinstance(error, ReplayMissError)
    reason = TerminationReason.REPLAY_MISS if missed else TerminationReason.INFRASTRUCTURE_ERROR
    return Ending(reason, str(error))


def is_sequential(tools: ToolProvider, name: str) -> bool:
    """Whether a tool runs alone; so does one of which that is not known."""
    try:
        return bool(tools.is_sequential(name))
    except Exception:  # noqa: BLE001 - as said above
        _LOG.warning("tool %r failed to say whether it runs alone", name, exc_info=True)
        return True


def effects_of(tools: ToolProvider, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
    """What a call does; None when its tool cannot say, or says something else."""
    try:
        effects: object = tools.effects(name, arguments)
    except Exception:  # noqa: BLE001 - then nobody knows what it does
        _LOG.warning("tool %r failed to say what a call does", name, exc_info=True)
        return None
    return effects if is_list_of(effects, Effect) else None


def invoke(tools: ToolProvider, invocation: ToolInvocation) -> ToolOutcome:
    """Run one call.

    Raises:
        ReplayMissError, InfrastructureError: not the tool failed; the run breaks off.
    """
    try:
        outcome: object = tools.invoke(invocation)
        if not isinstance(outcome, ToolOutcome):
            raise TypeError(f"invoke() must give a ToolOutcome, not {_kind(outcome)}")
    except (ReplayMissError, InfrastructureError):
        raise
    except Exception as error:  # noqa: BLE001 - what a tool does is a result
        return ToolOutcome(storable(error_line(error)), "raised")
    return outcome


def as_turn(answer: object) -> ModelTurn:
    """What a provider gave, if it is a turn.

    Raises:
        MalformedAnswerError: it is something else.
    """
    if isinstance(answer, ModelTurn):
        return answer
    raise MalformedAnswerError(
        f"the provider's complete() gave {_kind(answer)}: it must return a ModelTurn"
    )


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
