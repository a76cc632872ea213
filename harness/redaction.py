"""Secrets in texts and values: known ones, and what has the shape of a credential."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import quote, quote_plus

from harness.schema.record import Json, Record

AnyRecord = TypeVar("AnyRecord", bound=Record)

PLACEHOLDER = "[redacted]"
"""One for all secrets: what a rule finds without the key being set equals what was recorded."""

# The letter of an escape, as in "\nsk-...", is no part of the word that follows it in JSON texts.
_START = r"(?:\b|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))"

# Looking for a fixed part first is a hundred times cheaper than running the patterns.
_RULES = tuple(
    (fixed_parts, re.compile(pattern))
    for fixed_parts, pattern in (
        (("sk-",), _START + r"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _START + r"gh[pousr]_[A-Za-z0-9]{30,}"),
        (("github_pat_",), _START + r"github_pat_[A-Za-z0-9_]{22,}"),
        (("glpat-",), _START + r"glpat-[A-Za-z0-9_-]{20,}"),
        (("hf_",), _START + r"hf_[A-Za-z0-9]{30,}"),
        (("AKIA", "ASIA"), _START + r"(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        (("AIza",), _START + r"AIza[A-Za-z0-9_-]{35}"),
        (("xox",), _START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        (("eyJ",), _START + r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        (("earer ",), r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{20,}=*"),
        (
            ("PRIVATE KEY-----",),
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
        ),
    )
)


class Redactor:
    """Replaces known secret values, and what has the shape of a credential."""

    def __init__(self, secrets: Mapping[str, str], *, rules: bool = True) -> None:
        """Take secrets by the name they are known under."""
        # A value that is part of the placeholder would be replaced in itself for ever.
        self._secrets = {n: v for n, v in secrets.items() if v and v not in PLACEHOLDER}
        spellings = {s for value in self._secrets.values() for s in _spellings(value)}
        longest_first = sorted(spellings, key=lambda s: (-len(s), s))
        self._literal = (
            re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        )
        self._rules = _RULES if rules else ()

    def without_rules(self) -> Redactor:
        """The same with known values only: cheap enough for every look-up."""
        return Redactor(self._secrets, rules=False)

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._literal is not None:
            text = self._literal.sub(PLACEHOLDER, text)
        for pattern in self._rules_for(text):
            text = pattern.sub(PLACEHOLDER, text)
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets."""
        text = data.decode("latin-1")
        clean = self.text(text)
        return data if clean == text else clean.encode("latin-1")

    def json(self, value: Json) -> Json:
        """The value without secrets, in keys too; the value itself if there are none."""
        if self._literal is None and not self._rules:
            return value
        # One search over the whole value is far cheaper than one per string.
        if not self._finds(json.dumps(value, ensure_ascii=False)):
            return value
        return self._walk(value)

    def record(self, record: AnyRecord) -> AnyRecord:
        """The record without secrets; the record itself if there are none."""
        dumped = record.model_dump(mode="json", by_alias=True)
        clean = self.json(dumped)
        return record if clean is dumped else type(record).model_validate(clean)

    def _finds(self, text: str) -> bool:
        if self._literal is not None and self._literal.search(text):
            return True
        return any(pattern.search(text) for pattern in self._rules_for(text))

    def _rules_for(self, text: str) -> list[re.Pattern[str]]:
        return [
            pattern
            for fixed_parts, pattern in self._rules
            if any(part in text for part in fixed_parts)
        ]

    def _walk(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._walk(item) for key, item in value.items()}
        return value


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, in bytes, URLs, shells, Python, and JSON (also in JSON within JSON)."""
    yield secret
    yield secret.encode().decode("latin-1")
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield secret.replace("/", r"\/")
    yield secret.replace("'", "'\"'\"'")
    yield repr(secret)[1:-1]
    for ascii_only in (True, False):
        nested = secret
        for _ in range(3):
            nested = json.dumps(nested, ensure_ascii=ascii_only)[1:-1]
            yield nested
