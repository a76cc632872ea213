"""How recorded answers are given: at once or in their own time, and with faults on request."""

from __future__ import annotations

import random
import re
import threading
from dataclasses import dataclass
from typing import Final, Literal

from harness.errors import BadInputError
from harness.schema.recording import Pace

FaultKind = Literal["status", "timeout", "cut", "malformed"]
_KINDS: Final[dict[str, FaultKind]] = {
    "timeout": "timeout",
    "cut": "cut",
    "malformed": "malformed",
}
STATUSES = (400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529)

_AT = re.compile(r"(?P<kind>[a-z0-9]+)@(?P<first>[1-9][0-9]*)(?:-(?P<last>[1-9][0-9]*))?")
_CHANCE = re.compile(r"(?P<kind>[a-z0-9]+)%(?P<percent>[0-9]+(?:\.[0-9]+)?)")
_SEED = re.compile(r"seed=(?P<seed>[0-9]+)")
_HOW = (
    f"write KIND@CALL, KIND@FIRST-LAST or KIND%PERCENT, where KIND is timeout, cut, malformed, or"
    f" one of {', '.join(map(str, STATUSES))}; with percentages also seed=NUMBER; join them with"
    " commas"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one model call instead of its recorded answer."""

    kind: FaultKind
    """`cut` and `malformed` spoil the recorded answer, which the same request gets whole when it is
    sent again; the others come in its place and leave it for the next call."""
    status: int = 0
    """For `status`."""


@dataclass(frozen=True, slots=True)
class _At:
    text: str
    fault: Fault
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Chance:
    fault: Fault
    share: float


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Which model calls of every trial go wrong, and how; made by `FaultPlan.parse`."""

    chosen: tuple[_At, ...]
    random: tuple[_Chance, ...]
    seed: int

    @classmethod
    def parse(cls, spec: str) -> FaultPlan:
        """Read `429@2,timeout@4-5,cut%10,seed=7`.

        Raises:
            BadInputError: it says something else.
        """
        chosen: list[_At] = []
        chances: list[_Chance] = []
        seed = 0
        for part in (part.strip() for part in spec.split(",")):
            if at := _AT.fullmatch(part):
                first = int(at["first"])
                last = int(at["last"] or first)
                if last < first:
                    raise _bad(spec, part)
                chosen.append(_At(part, _fault(spec, part, at["kind"]), first, last))
            elif (chance := _CHANCE.fullmatch(part)) and 0 < float(chance["percent"]) <= 100:
                share = float(chance["percent"]) / 100
                chances.append(_Chance(_fault(spec, part, chance["kind"]), share))
            elif found := _SEED.fullmatch(part):
                seed = int(found["seed"])
            else:
                raise _bad(spec, part)
        if not chosen and not chances:
            raise BadInputError(f"faults {spec!r}: nothing goes wrong with it; {_HOW}")
        return cls(tuple(chosen), tuple(chances), seed)

    def after(self, calls: int) -> tuple[str, ...]:
        """The parts, as written, that are about later calls than so many."""
        return tuple(one.text for one in self.chosen if one.first > calls)

    def begin(self, trial: str) -> Faults:
        """The faults of one trial; random ones differ from trial to trial, not from run to run."""
        return Faults(self, trial)


class Faults:
    """Counts the model calls of one trial and says which of them go wrong."""

    def __init__(self, plan: FaultPlan, trial: str) -> None:
        """Start before the first call."""
        self._plan = plan
        self._random = random.Random(f"{plan.seed}/{trial}")
        self.calls = 0
        """How many there were."""
        self._lock = threading.Lock()

    def next(self) -> Fault | None:
        """What goes wrong with the next call, a retry counting as one; None where nothing does."""
        with self._lock:
            self.calls += 1
            # One draw for each chance, whatever comes of it: later calls do not depend on it.
            drawn = [one.fault for one in self._plan.random if self._random.random() < one.share]
            chosen = [one.fault for one in self._plan.chosen if one.first <= self.calls <= one.last]
            return next(iter((*chosen, *drawn)), None)


@dataclass(frozen=True, slots=True)
class Playback:
    """How the recorded answers of one trial are given."""

    pace: Pace = "fast"
    """`recorded` waits as long as the answer took, and as its pieces came."""
    faults: Faults | None = None


def _fault(spec: str, part: str, kind: str) -> Fault:
    if kind in _KINDS:
        return Fault(_KINDS[kind])
    if kind.isdigit() and int(kind) in STATUSES:
        return Fault("status", int(kind))
    raise _bad(spec, part)


def _bad(spec: str, part: str) -> BadInputError:
    return BadInputError(f"faults {spec!r}: {part!r} is no fault; {_HOW}")
