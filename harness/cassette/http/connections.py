"""Real connections under vcrpy's stubs, made while other threads run on.

For the moment in which a stub makes its real connection vcrpy takes the whole patch away, for all
threads: what they ask for in that moment goes to the network unseen. Here it stays.
"""

from __future__ import annotations

import http.client
import importlib
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any
from unittest import mock

import vcr.patch  # type: ignore[import-untyped]
from vcr.stubs import VCRHTTPSConnection  # type: ignore[import-untyped]

from harness.cassette.http.around import seen


def _with_names_of_today(function: Any) -> Any:
    """The function, for which all global names mean for ever what they mean now."""
    copy = types.FunctionType(
        function.__code__,
        dict(function.__globals__),
        argdefs=function.__defaults__,
        closure=function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


class _RealHTTPSConnection(http.client.HTTPSConnection):
    """The standard class, which asks for `super` of what its own name stands for: a stub."""

    __init__ = _with_names_of_today(http.client.HTTPSConnection.__init__)


def connection_patches() -> Iterator[tuple[Any, str, Any]]:
    """What stands in place of vcrpy's own way."""
    yield vcr.patch, "force_reset", seen
    yield VCRHTTPSConnection, "_baseclass", _RealHTTPSConnection
    with suppress(ImportError):
        httplib2 = importlib.import_module("httplib2")
        stubs = importlib.import_module("vcr.stubs.httplib2_stubs")
        for name in ("HTTPConnectionWithTimeout", "HTTPSConnectionWithTimeout"):
            stub = getattr(stubs, f"VCR{name}")
            yield stub, "__init__", _among_real_classes(stub.__init__, httplib2)


_resetting = threading.Lock()


def _among_real_classes(make: Callable[..., None], httplib2: Any) -> Callable[..., None]:
    """httplib2 looks up four classes by name: for it alone such a moment is left."""
    real = [
        (module, name, getattr(module, name))
        for module, protocol in ((http.client, "Connection"), (httplib2, "ConnectionWithTimeout"))
        for name in (f"HTTP{protocol}", f"HTTPS{protocol}")
    ]

    def made(stub: Any, *args: Any, **kwargs: Any) -> None:
        with _resetting, ExitStack() as reset:
            for patched in real:
                reset.enter_context(mock.patch.object(*patched))
            make(stub, *args, **kwargs)

    return made
