"""Removing secrets from texts, JSON values, records and streams."""

from __future__ import annotations

import copy
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic_core import PydanticSerializationError, to_json

from harness.redaction.known import KnownSecret, without_breaks
from harness.redaction.marks import Marks
from harness.redaction.pieces import Pieces
from harness.redaction.rules import RULES, Rule
from harness.schema.record import Json, Record

AnyRecord = TypeVar("AnyRecord", bound=Record)

PLACEHOLDER = "[redacted]"
"""One for all secrets: what a rule finds without the key being set equals what was recorded."""

_MARKS = Marks(RULES)


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text."""

    rule: str
    """What found it: the kind of credential, the variable whose value it is, or the suite's own
    pattern."""
    start: int
    end: int


class Redactor:
    """Replaces known secret values, and what has the shape of a credential."""

    def __init__(
        self, secrets: Mapping[str, str], *, rules: bool = True, extra: Sequence[str] = ()
    ) -> None:
        """Say what is secret.

        Args:
            secrets: Values by the name they are known under.
            rules: Whether what has the shape of a credential is one.
            extra: Regular expressions of further shapes.
        """
        self._secrets = dict(secrets)
        # A value that is part of the placeholder would be replaced in itself for ever.
        self._known = tuple(
            KnownSecret(name, value)
            for name, value in secrets.items()
            if value and value not in PLACEHOLDER
        )
        self._has_rules = rules
        self._extra = tuple(re.compile(pattern) for pattern in extra) if rules else ()

    def without_rules(self) -> Redactor:
        """The same with known values only: cheap enough for every look-up."""
        return Redactor(self._secrets, rules=False)

    def find(self, text: str) -> list[Found]:
        """The secrets in a text, in order; none overlaps another."""
        found = sorted(self._all(text), key=lambda one: one.start)
        merged: list[Found] = []
        for one in found:
            if merged and one.start < merged[-1].end:
                last = merged[-1]
                merged[-1] = Found(last.rule, last.start, max(last.end, one.end))
            else:
                merged.append(one)
        return merged

    def text(self, text: str) -> str:
        """The text without secrets; the text itself if there are none."""
        return self.joined([text])[0]

    def joined(self, texts: Sequence[str]) -> list[str]:
        """The pieces of one text without its secrets, also those that go over several pieces.

        The placeholder stands in the piece where the secret begins.
        """
        found = self.find(texts[0] if len(texts) == 1 else "".join(texts))
        if not found:
            return list(texts)
        clean = []
        offset = 0
        for text in texts:
            clean.append(_without(text, offset, found))
            offset += len(text)
        return clean

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets, also those that are packed with gzip; itself without any."""
        plain = unpacked(data)
        if plain is not None:
            clean_plain = self.data(plain)
            return data if clean_plain is plain else gzip.compress(clean_plain, mtime=0)
        text = data.decode("latin-1")
        clean = self.text(text)
        return data if clean is text else clean.encode("latin-1")

    def find_in(self, data: bytes) -> list[Found]:
        """The secrets in bytes, also in those that are packed with gzip."""
        plain = unpacked(data)
        return self.find(data.decode("latin-1")) if plain is None else self.find_in(plain)

    def json(self, value: Json) -> Json:
        """The value without secrets, in keys too; the value itself if there are none."""
        if not self._known and not self._has_rules:
            return value
        # One search over the whole value is far cheaper than one per string.
        data = _dumped(value)
        rules = self._rules_for(data)
        if not (rules or self._extra or self._any_known_in(data)):
            return value
        if next(self._found(data.decode(), rules), None) is None:
            return value
        return self._walk(value)

    def events(self, events: Json) -> Json:
        """A stream's events without secrets, also those that come in pieces, event by event."""
        pieces = Pieces(events)
        if any(self.find("".join(texts)) for texts in pieces.texts()):
            events = copy.deepcopy(events)
            pieces = Pieces(events)
            pieces.replace(self.joined)
        return self.json(events)

    def record(self, record: AnyRecord) -> AnyRecord:
        """The record without secrets; the record itself if there are none."""
        dumped = record.model_dump(mode="json", by_alias=True)
        clean = self.json(dumped)
        return record if clean is dumped else type(record).model_validate(clean)

    def _all(self, text: str) -> Iterator[Found]:
        """Every secret, those that overlap too."""
        return self._found(text, self._rules_for(text.encode(errors="replace")))

    def _found(self, text: str, rules: Sequence[Rule]) -> Iterator[Found]:
        """The same, with the rules that are worth trying."""
        if self._known:
            whole = without_breaks(text.encode(errors="replace"))
            for known in self._known:
                yield from (Found(known.name, *span) for span in known.find(text, whole))
        for rule in rules:
            yield from (Found(rule.name, *span) for span in rule.find(text))
        for pattern in self._extra:
            for match in pattern.finditer(text):
                if match.end() > match.start():
                    yield Found(pattern.pattern, *match.span())

    def _any_known_in(self, data: bytes) -> bool:
        whole = without_breaks(data) if self._known else b""
        return any(known.may_be_in(data, whole) for known in self._known)

    def _rules_for(self, data: bytes) -> list[Rule]:
        """The rules that are worth trying on a text."""
        return _MARKS.rules_for(data) if self._has_rules else []

    def _walk(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._item(key, item) for key, item in value.items()}
        return value

    def _item(self, key: str, value: Json) -> Json:
        clean = self._walk(value)
        if isinstance(value, str) and clean is value:
            # Its name may say that it is one.
            name = json.dumps(key, ensure_ascii=False)
            written = f"{name}: {json.dumps(value, ensure_ascii=False)}"
            if any(one.start > len(name) for one in self._all(written)):
                return PLACEHOLDER
        return clean


def unpacked(data: bytes) -> bytes | None:
    """What bytes were packed from with gzip; None if they were not."""
    if not data.startswith(b"\x1f\x8b"):
        return None
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


def _without(text: str, offset: int, found: Iterable[Found]) -> str:
    """One piece of a longer text, which begins at an offset, without what was found there."""
    parts: list[str] = []
    kept = 0
    for one in found:
        start, end = one.start - offset, one.end - offset
        if end <= 0 or start >= len(text):
            continue
        parts.append(text[kept : max(start, 0)])
        if start >= 0:
            parts.append(PLACEHOLDER)
        kept = end
    return "".join((*parts, text[kept:])) if parts or kept else text


def _dumped(value: Json) -> bytes:
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:  # half a surrogate pair
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")
