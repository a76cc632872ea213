"""Errors that nobody expected, made into ones that end a trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import InfrastructureError, error_line

# What code raises that meets something it was not made for. Not all exceptions: that of a timeout,
# which comes out of a signal's handler at any moment, is for the agent, who may ask again.
_UNEXPECTED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def unexpected_told(where: str) -> Iterator[None]:
    """Name the cassette in whatever goes wrong inside in a way that nobody thought of.

    Raises:
        InfrastructureError: something did.
    """
    try:
        yield
    except _UNEXPECTED as error:
        raise InfrastructureError(f"{where}: cannot go on: {error_line(error)}") from error
