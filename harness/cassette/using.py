"""A cassette around any code: `with harness.cassette.use(path):`."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, get_args

from harness.cassette.file.tape import Origin
from harness.cassette.http import use as use_session
from harness.cassette.playback import FaultPlan, Playback
from harness.cassette.replay.session import Session
from harness.cassette.replay.store import Store
from harness.cassette.request.rules import Rules
from harness.cassette.secrets import secrets_in
from harness.errors import BadInputError, HarnessError, ReplayMissError
from harness.loader.reading import validated
from harness.redaction import Redactor
from harness.schema.recording import Pace, RecordingRules
from harness.schema.results import RecordMode

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_VARIANT = "default"
"""Code outside a suite has no variants."""

_CLIENTS = frozenset(
    {
        "aiohttp", "anthropic", "botocore", "google", "http", "httpcore", "httpcore2", "httplib2",
        "httpx", "httpx2", "ollama", "openai", "requests", "urllib", "urllib3",
    }
)  # fmt: skip
"""Packages whose errors say no more than that a request failed."""


def use(
    path: str | os.PathLike[str],
    record_mode: RecordMode = "none",
    *,
    pace: Pace = "fast",
    faults: str | None = None,
    rules: RecordingRules | Mapping[str, Any] | None = None,
) -> Use:
    """Answer the HTTP requests of some code from a cassette.

    For `with`, `async with`, or as a decorator of a function or coroutine function. Gives the
    session, which counts `served` and `recorded` answers and lists `misses`. Values of `*_API_KEY`
    variables, and what has the shape of a credential, are removed before anything is written.

    Leaving it raises the first miss, whatever the code did with the error it got. Where another
    exception of the code's own is on its way, the miss is a note on that.

    Args:
        path: The cassette file, made if it may be recorded.
        record_mode: `none` only replays. `once` records where there is no file. `new_episodes`
            replays what is there and records the rest. `all` records anew.
        pace: `recorded` waits as long as the recorded answers took; `fast` does not.
        faults: What goes wrong with which model call, as in `429@2,timeout@4,cut%10,seed=7`; only
            with recorded answers.
        rules: How requests are compared, and what is kept: the same as `[recording]` in suite.toml.

    Raises:
        BadInputError: an argument says something that cannot be.
    """
    _check("record_mode", record_mode, get_args(RecordMode))
    _check("pace", pace, get_args(Pace))
    if not isinstance(path, str | os.PathLike):
        raise BadInputError(f"path {path!r} is no path of a file")
    plan = None if faults is None else FaultPlan.parse(faults)
    return Use(_Settings(Path(path), record_mode, pace, plan, _rules(rules)))


def _rules(rules: RecordingRules | Mapping[str, Any] | None) -> RecordingRules:
    if rules is None or isinstance(rules, RecordingRules):
        return rules or RecordingRules()
    if not isinstance(rules, Mapping):
        raise BadInputError(f"rules {rules!r} are no RecordingRules and no dict")
    return validated(RecordingRules, rules, where="rules")


@dataclass(frozen=True, slots=True)
class _Settings:
    path: Path
    record_mode: RecordMode
    pace: Pace
    faults: FaultPlan | None
    rules: RecordingRules


class Use:
    """A cassette to be used; made by `use`."""

    def __init__(self, settings: _Settings) -> None:
        """Open nothing yet."""
        self._settings = settings
        self._entered: AbstractContextManager[Session] | None = None

    def __enter__(self) -> Session:
        """Open the cassette."""
        if self._entered is not None:
            raise BadInputError(
                f"{self._settings.path}: this use() is entered already; call use() once for each"
            )
        self._entered = _in_use(self._settings)
        try:
            return self._entered.__enter__()
        except BaseException:
            self._entered = None
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the cassette, and raise a miss."""
        entered, self._entered = self._entered, None
        if entered is not None:
            entered.__exit__(kind, error, traceback)

    async def __aenter__(self) -> Session:
        """Open the cassette."""
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the cassette, and raise a miss."""
        self.__exit__(kind, error, traceback)

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        """Use the cassette in every call of a function, each from the beginning."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise BadInputError(
                f"{function.__qualname__} is a generator; use the cassette inside it, with `with`"
            )
        settings = self._settings
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def in_use(*args: Any, **kwargs: Any) -> Any:
                with _in_use(settings):
                    return await function(*args, **kwargs)

            return in_use  # type: ignore[return-value]

        @functools.wraps(function)
        def using(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            with _in_use(settings):
                return function(*args, **kwargs)

        return using


@contextmanager
def _in_use(settings: _Settings) -> Iterator[Session]:
    path = settings.path
    suite, task = path.absolute().parent.name, path.stem
    secrets = secrets_in(os.environ, (suite, task, _VARIANT))
    store = Store.open(
        path,
        settings.record_mode,
        origin=Origin(suite, task, 0, ""),
        redactor=Redactor(secrets, extra=settings.rules.redact),
        rules=Rules(settings.rules),
        record_hint=f'harness.cassette.use({str(path)!r}, record_mode="new_episodes")',
    )
    finished = False
    try:
        session = store.session(_VARIANT)
        faults = None if settings.faults is None else settings.faults.begin(task)
        try:
            with use_session(session, Playback(settings.pace, faults)):
                yield session
        except BaseException as error:
            _note(error, session)
            # It may be how the code is meant to end. Only a good recording is not replaced by half.
            finished = settings.record_mode != "all" or not path.exists()
            if session.misses and type(error).__module__.partition(".")[0] in _CLIENTS:
                raise ReplayMissError(session.misses[0].text) from error
            raise
        session.finish()
        finished = True
    finally:
        store.close(finished=finished)
    if session.misses:
        raise ReplayMissError(session.misses[0].text)


def _note(error: BaseException, session: Session) -> None:
    """End the trial of code that raised something: what else went wrong is a note on that."""
    for miss in session.misses[:1]:
        error.add_note(miss.text)
    try:
        session.finish()
    except HarnessError as problem:
        error.add_note(str(problem))


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInputError(f"{name} {value!r} is none of {', '.join(allowed)}")
