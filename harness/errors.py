"""Every error this package raises on purpose.

HarnessError                      shown as one line: what, where, what to do next
├── BadInputError                 a file, option or name that cannot be used (exit code 2)
│   ├── ConfigurationError        a loop, variant or task that contradicts itself
│   └── CassetteError             a cassette that is damaged, cut or of another format
├── ModelCallError                a model call that failed (an ending, not a crash)
│   ├── RateLimitedError
│   ├── AuthenticationError
│   ├── ContextExceededError
│   ├── OverloadedError
│   ├── MalformedAnswerError
│   ├── OutOfTimeError            the run's time was over before the answer was there
│   └── ReplayMissError           replay was asked for something that was never recorded
└── InfrastructureError           the machine failed, not the agent: never scored
    └── SandboxError
        ├── NoWorkdirError        a command's folder cannot be entered
        └── FullError             there are too many processes to start another
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base of the tree; its text is ready to be shown to a user."""


class BadInputError(HarnessError):
    """Input that cannot be used; the text names file, key or line and the next step."""


class ConfigurationError(BadInputError):
    """A combination of settings that can never work, found before anything runs."""


class CassetteError(BadInputError):
    """A cassette file that cannot be trusted; nothing was written over it."""


class ModelCallError(HarnessError):
    """A model call that failed; the engine counts it and may try again."""


class RateLimitedError(ModelCallError):
    """The vendor asks to slow down (HTTP 429)."""


class AuthenticationError(ModelCallError):
    """The key is missing, wrong or not allowed (HTTP 401, 403)."""


class ContextExceededError(ModelCallError):
    """The conversation is longer than the model's context window."""


class OverloadedError(ModelCallError):
    """The vendor or the connection to it failed (HTTP 5xx, connection errors)."""


class MalformedAnswerError(ModelCallError):
    """The vendor answered with something its own format does not allow."""


class OutOfTimeError(ModelCallError):
    """The run's time was over before the answer was there; the run ends with it."""


class ReplayMissError(ModelCallError):
    """Replay met a request that the cassette does not hold; the text explains the difference."""


class RunFailedError(HarnessError):
    """A run that did not complete, raised because `raise_on_failure` was set."""

    def __init__(self, message: str, trajectory: object) -> None:
        super().__init__(message)
        self.trajectory = trajectory

    def __reduce__(self) -> tuple[type[RunFailedError], tuple[str, object]]:
        """Pickled whole: worker processes hand it on."""
        return type(self), (str(self), self.trajectory)


class InfrastructureError(HarnessError):
    """Something outside the agent broke; such a trial is counted apart and never scored."""


class SandboxError(InfrastructureError):
    """The sandbox could not be set up or run."""


class NoWorkdirError(SandboxError):
    """The folder that a command was to start in is not there, or cannot be entered."""


class FullError(SandboxError):
    """A command cannot be started beside those that run: its container has too many processes."""


def error_line(error: BaseException) -> str:
    """What kind of error it is and what it says, for one line of a message."""
    return f"{type(error).__name__}: {error}"
