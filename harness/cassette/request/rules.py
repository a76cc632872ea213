"""A suite's rules for its recordings, ready to be applied."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

from harness.cassette.request.canonical import CanonicalRequest
from harness.cassette.request.each_message_once import EachMessageOnce
from harness.schema.record import Json, JsonObject
from harness.schema.recording import BuiltInNormalisation, RecordingRules, Replacement

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_ZONE = r"(?:\ ?(?:Z|UTC|GMT|BST|CES?T|[ECMP][DS]T|[IJ]ST|[+-]\d{2}:?\d{2})(?![A-Za-z0-9]))"
_TIME = rf"\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:\ ?[AaPp](?:\.[Mm]\.|[Mm]))?{_ZONE}?"

_DATES = rf"""
    (?<!\d)\d{{4}}-(?:0\d|1[0-2])-[0-3]\d(?:[T\ ]{_TIME})?(?!\d)  # 2026-11-22 04:42:42Z
  | (?<!\d)\d{{8}}T\d{{6}}Z?(?!\d)  # 20261122T044242Z
  | \b(?:{_DAY},?\ )?\d{{1,2}}\ {_MONTH},?\ \d{{4}}(?:,?\ {_TIME})?(?!\d)  # Sun, 22 Nov 2026 04:42
  | \b{_DAY}\ {_MONTH}\ {{1,2}}\d{{1,2}}\ {_TIME}\ \d{{4}}(?!\d)  # Sun Nov 22 04:42:42 2026
  | \b(?:{_DAY},?\ )?{_MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?,?\ \d{{4}}  # November 22, 2026
        (?:,?\ (?:at\ )?{_TIME})?(?!\d)
  | \b{_MONTH}\ {{1,2}}\d{{1,2}}\ {_TIME}(?!\d)  # Nov 22 04:42
  | (?<![\d/.])(?:\d{{1,2}}/\d{{1,2}}/|\d{{2}}\.\d{{2}}\.)(?:19|20)\d{{2}}  # 22/11/2026, 22.11.2026
        (?:,?\ {_TIME})?(?!\d|[/.]\d)
  | (?<![\d/])\d{{4}}/(?:0\d|1[0-2])/[0-3]\d(?:\ {_TIME})?(?![\d/])  # 2026/11/22
  | (?<![\d:])\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?:\ ?[AaPp][Mm])?(?![\d:])  # 04:42:42
"""
_IDS = r"""
    (?<![0-9A-Za-z])
    (?: [0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}
      | (?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{16,}
      | (?=[A-F]*[0-9])(?=[0-9]*[A-F])[0-9A-F]{16,}
    )(?![0-9A-Za-z])
"""
# The first name below the folder goes, if it looks made up: /tmp/notes.txt is no such path.
_TEMPORARY = r"""
    (?<![\w.~-])
    (?: (?:/private)?/var/folders/[\w.+-]+/[\w.+-]+/T/[\w.+-]+
      | (?:/private)?(?:/var)?/tmp/(?:tmp[\w.-]*|(?=[\w.-]*[0-9A-Z])[\w.-]*\w)
      | [A-Za-z]:\\Users\\[^\\\s]+\\AppData\\Local\\Temp\\[\w.-]+
    )
"""

_BUILT_IN: Final[dict[BuiltInNormalisation, tuple[str, str]]] = {
    "dates": (_DATES, "<date>"),
    "ids": (_IDS, "<id>"),
    "temporary-paths": (_TEMPORARY, "<tmp>"),
}

_STRUCTURE = frozenset(
    {"call_id", "id", "model", "name", "role", "tool_call_id", "tool_use_id", "type"}
)
"""Keys whose values hold a conversation together or say who answers: the built-in normalisations
leave them alone."""


@dataclass(frozen=True, slots=True)
class _Change:
    pattern: re.Pattern[str]
    replace: str
    is_built_in: bool


class Rules:
    """What does not count when requests are compared."""

    def __init__(self, rules: RecordingRules | None = None) -> None:
        """Prepare them; without any a request stays as it is."""
        self.rules = rules or RecordingRules()
        paths = [tuple(path.split(".")) for path in self.rules.ignore]
        self._in_messages = tuple(path[2:] for path in paths if path[0] == "messages")
        self._in_parameters = tuple(path for path in paths if path[0] != "messages")
        self._changes = tuple(map(_change, self.rules.normalise))
        self._each_once = EachMessageOnce(self._parameters, self._message)

    def request(self, request: CanonicalRequest) -> CanonicalRequest:
        """The request as it is compared and kept; itself where no rule changes it."""
        if not self.rules.ignore and not self._changes:
            return request
        return self._each_once(request)

    def text(self, text: str) -> str:
        """A tool result as it is compared."""
        for change in self._changes:
            text = change.pattern.sub(change.replace, text)
        return text

    def _parameters(self, request: CanonicalRequest) -> tuple[str, JsonObject]:
        if request.is_model_call:
            parameters = _without(request.parameters, self._in_parameters)
            return request.endpoint, cast(JsonObject, self._normalised(parameters))
        method, _, url = request.endpoint.partition(" ")
        parameters = dict(request.parameters)
        if "body" in parameters:
            # There the fields are those of the body.
            parameters["body"] = _without(parameters["body"], self._in_parameters)
        return f"{method} {self.text(url)}", cast(JsonObject, self._normalised(parameters))

    def _message(self, message: Json) -> Json:
        return self._normalised(_without(message, self._in_messages))

    def _normalised(self, value: Json, key: str = "") -> Json:
        if isinstance(value, str):
            changes = self._changes
            if key in _STRUCTURE:
                changes = tuple(change for change in changes if not change.is_built_in)
            for change in changes:
                value = change.pattern.sub(change.replace, value)
            return value
        if isinstance(value, list):
            return [self._normalised(item, key) for item in value]
        if isinstance(value, dict):
            return {name: self._normalised(item, name) for name, item in value.items()}
        return value


def _change(rule: str | Replacement) -> _Change:
    if isinstance(rule, Replacement):
        return _Change(re.compile(rule.pattern), rule.replace, is_built_in=False)
    pattern, replace = _BUILT_IN[cast(BuiltInNormalisation, rule)]
    return _Change(re.compile(pattern, re.VERBOSE), replace, is_built_in=True)


def _without(value: Json, paths: Iterable[tuple[str, ...]]) -> Json:
    """A copy without the fields at some paths."""
    for path in paths:
        value = _without_one(value, path)
    return value


def _without_one(value: Json, path: tuple[str, ...]) -> Json:
    first, *rest = path
    if isinstance(value, list) and first == "*" and rest:
        return [_without_one(item, tuple(rest)) for item in value]
    if not isinstance(value, dict) or first not in value:
        return value
    if not rest:
        return {key: item for key, item in value.items() if key != first}
    return value | {first: _without_one(value[first], tuple(rest))}
