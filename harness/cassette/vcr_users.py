"""Our cassettes for code that uses vcrpy already: chosen by the name of a serializer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vcr import VCR  # type: ignore[import-untyped]

from harness.cassette.using import Use, use
from harness.errors import BadInputError

SERIALIZER = "harness"

_UNDERSTOOD = frozenset(
    {
        "cassette_library_dir", "func_path_generator", "match_on", "path_transformer",
        "record_mode", "serializer",
    }
)  # fmt: skip
_HOOKS = (
    "before_record_request", "before_record_response", "before_save_interaction",
    "after_load_interaction", "filter_post_data_parameters", "filter_query_parameters",
    "filter_sensitive_data", "ignore_hosts", "ignore_localhost",
)  # fmt: skip
"""Settings of a VCR that say what is kept; `filter_headers` does not: no header is."""


def register(vcr: VCR) -> VCR:
    """Let a VCR use our cassettes wherever its serializer is `harness`; gives the VCR back.

    `vcr.use_cassette(path, serializer="harness")` is then `harness.cassette.use` with the VCR's
    record mode, folder and names. Requests are compared our way, not by `match_on`, and secrets are
    removed our way: a VCR with hooks or filters of its own is refused.
    """
    stock = vcr.use_cassette

    def use_cassette(path: Any = None, **options: Any) -> Any:
        if options.get("serializer", vcr.serializer) != SERIALIZER:
            return stock(path, **options)
        if path is not None and not isinstance(path, str | os.PathLike):
            return _named_after(vcr, options)(path)
        if path is None:
            return _named_after(vcr, options)
        return _use(vcr, path, options)

    vcr.register_serializer(SERIALIZER, None)
    vcr.use_cassette = use_cassette
    return vcr


def _named_after(vcr: VCR, options: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    def decorated(function: Callable[..., Any]) -> Any:
        name = vcr.get_merged_config(**options)["func_path_generator"] or _name
        return _use(vcr, name(function), options)(function)

    return decorated


def _name(function: Callable[..., Any]) -> str:
    return function.__name__


def _use(vcr: VCR, path: str | os.PathLike[str], options: dict[str, Any]) -> Use:
    other = sorted(options.keys() - _UNDERSTOOD)
    other += [name for name in _HOOKS if getattr(vcr, name)]
    if other:
        raise BadInputError(
            f"{os.fspath(path)}: {other[0]!r} means nothing to the serializer 'harness'; use"
            " harness.cassette.use, or another serializer"
        )
    config = vcr.get_merged_config(**options)
    transform = config["path_transformer"]
    where = Path(os.fspath(path) if transform is None else transform(os.fspath(path)))
    return use(where, config["record_mode"].value)
