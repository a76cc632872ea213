"""Whether a tool call may run: rate, autonomy, scope, commands, paths, domains, own checks."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import get_args

from harness.errors import ConfigurationError, error_line
from harness.loop.command_line import refused_program
from harness.loop.paths import is_below
from harness.protocols import Check
from harness.schema.hosts import host_name, is_within
from harness.schema.loop_config import Governance
from harness.values import CallVerdict, Effect, Judgement, PendingCall

ALLOWED = Judgement("allowed")

_EVERY_TOOL = "tools:execute"


def lacking_scope(scopes: Collection[str], tool: str) -> str | None:
    """Why a caller with these scopes may not use a tool, or None."""
    own = f"tools:{tool}"
    if _EVERY_TOOL in scopes or own in scopes:
        return None
    return f"the caller has neither the scope {_EVERY_TOOL} nor {own}"


class Governor:
    """Judges the tool calls of one run.

    The lists of programs, paths and domains hold for what a tool says that it does: what a listed
    program does by itself is not seen, and a tool that cannot say is stopped by `read_only` alone.
    """

    def __init__(
        self,
        governance: Governance | None = None,
        checks: Sequence[Check] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with no call made.

        Args:
            governance: What calls may do; None is no restriction.
            checks: The user's rules, asked in order after all others.
            clock: Seconds, for the rate limits.

        Raises:
            ConfigurationError: an entry of a list can never match.
        """
        self.governance = governance or Governance()
        _refuse_entries(self.governance)
        self._checks = tuple(checks)
        self._rate = _RateLimit(self.governance, clock)

    def judge(self, call: PendingCall, *, again: bool = False) -> Judgement:
        """What all rules together say: the first that does not let it run, else any warning.

        Args:
            call: The call as it is to run.
            again: It was judged before and its arguments have changed since, so that it is no
                further call to the rate limits.
        """
        warning = ALLOWED
        for judgement in self._judgements(call, again=again):
            if judgement.verdict not in ("allowed", "warned"):
                return judgement
            if judgement.verdict == "warned" and warning is ALLOWED:
                warning = judgement
        return warning

    def _judgements(self, call: PendingCall, *, again: bool) -> Iterator[Judgement]:
        if not again:
            yield _deny_for(self._rate.refuse())
        yield self._autonomy(call)
        yield _deny_for(self._out_of_scope(call))
        yield _deny_for(self._not_listed(call.effects or ()))
        for check in self._checks:
            yield _ask(check, call)

    def _autonomy(self, call: PendingCall) -> Judgement:
        level = self.governance.autonomy
        what = _consequence(call)
        if level == "full" or what is None:
            return ALLOWED
        if level == "read_only":
            return Judgement("denied", f"only reading is allowed, and {what}")
        return Judgement("warned", what)

    def _out_of_scope(self, call: PendingCall) -> str | None:
        scopes = self.governance.scopes
        return None if scopes is None else lacking_scope(scopes, call.name)

    def _not_listed(self, effects: Sequence[Effect]) -> str | None:
        allowed = self.governance
        for effect in effects:
            refusal = None
            if effect.kind == "command" and allowed.commands is not None:
                refusal = refused_program(effect.target, allowed.commands)
            elif effect.kind in ("read", "write") and allowed.paths is not None:
                refusal = _refused_path(effect.target, allowed.paths)
            elif effect.kind == "network" and allowed.domains is not None:
                refusal = _refused_host(effect.target, allowed.domains)
            if refusal is not None:
                return refusal
        return None


class _RateLimit:
    """Sliding windows of a second and a minute.

    A call counts once it is let through here, even when a later rule then denies it; a call that is
    refused here does not.
    """

    def __init__(self, governance: Governance, clock: Callable[[], float]) -> None:
        self._limits = [
            (limit, seconds, name)
            for limit, seconds, name in (
                (governance.burst, 1.0, "second"),
                (governance.per_minute, 60.0, "minute"),
            )
            if limit is not None
        ]
        self._clock = clock
        self._made: deque[float] = deque()

    def refuse(self) -> str | None:
        """Why no further call may be made now; None counts one."""
        now = self._clock()
        while self._made and self._made[0] <= now - 60:
            self._made.popleft()
        for limit, seconds, name in self._limits:
            if sum(made > now - seconds for made in self._made) >= limit:
                return f"at most {limit} tool calls a {name} are allowed"
        if self._limits:
            self._made.append(now)
        return None


def _deny_for(reason: str | None) -> Judgement:
    return ALLOWED if reason is None else Judgement("denied", reason)


def _ask(check: Check, call: PendingCall) -> Judgement:
    try:
        judgement = check(replace(call, arguments=copy.deepcopy(call.arguments)))
    except Exception as error:  # noqa: BLE001 - a check that fails lets nothing pass
        return Judgement("denied", f"a check failed ({error_line(error)})")
    if not isinstance(judgement, Judgement):
        found = type(judgement).__name__
        return Judgement("denied", f"a check failed (it gave a {found} and no Judgement)")
    if judgement.verdict not in get_args(CallVerdict):
        return Judgement("denied", f"a check failed (its verdict is {judgement.verdict!r})")
    return judgement


def _consequence(call: PendingCall) -> str | None:
    """What a call changes, or might; None when it only reads."""
    if call.effects is None:
        return f"{call.name} does not say what it does"
    for effect in call.effects:
        if effect.kind == "command":
            return f"{call.name} runs a command"
        if effect.kind not in ("read", "network"):
            return f"{call.name} writes {effect.target}"
    return None


def _refused_path(path: str, allowed: Sequence[str]) -> str | None:
    try:
        inside = is_below(path, allowed)
    except ValueError:
        inside = False
    return None if inside else f"the path {path!r} is not allowed"


def _refused_host(host: str, allowed: Sequence[str]) -> str | None:
    return None if is_within(host, allowed) else f"the host {host!r} is not allowed"


def _refuse_entries(governance: Governance) -> None:
    for command in governance.commands or ():
        if not command or command.split() != [command]:
            raise ConfigurationError(
                f"governance.commands: {command!r} is not one program: give its name alone"
            )
    for path in governance.paths or ():
        if not path or "\0" in path:
            raise ConfigurationError(
                f"governance.paths: {path!r} is no path: give a folder or file, such as /workspace"
            )
    for domain in governance.domains or ():
        if host_name(domain) is None:
            raise ConfigurationError(
                f"governance.domains: {domain!r} is no host: give its name, such as example.com"
            )
