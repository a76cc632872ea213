"""The lines of a cassette file: JSON Lines, each sealed with a checksum of itself."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError

from harness.schema.record import Json, JsonObject, Record
from harness.schema.results import Verdict
from harness.schema.signals import RunRequest

FORMAT: Literal[1] = 1
OUT_OF_TIME = 0
"""Status of a call that the end of the run's time cut: no HTTP answer has it."""
_SUM_CHARS = 16
_SEAL = re.compile(rb',"sum":"([0-9a-f]{16})"\}')
_SEAL_LENGTH = len(b',"sum":""}') + _SUM_CHARS


class _Written(Record):
    """What is written without the fields that say nothing."""

    left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that are written only where they differ from their default."""

    def model_dump(self, **options: Any) -> JsonObject:
        """As for every record, but without those fields, here and in what it holds."""
        # No serializer of pydantic's: it makes an error of its own of any exception that comes
        # in it, even of a KeyboardInterrupt.
        fields: JsonObject = super().model_dump(**options)
        self._leave_out(fields)
        return fields

    def _leave_out(self, fields: JsonObject) -> None:
        for name, value in self:
            inner = fields.get(name)
            if name in self.left_out and value == type(self).model_fields[name].default:
                del fields[name]
            elif isinstance(value, _Written) and isinstance(inner, dict):
                value._leave_out(inner)


class StoredResponse(_Written):
    """An HTTP answer as it is kept."""

    left_out = frozenset({"cut"})

    status: int
    headers: dict[str, str] = Field(default_factory=dict)
    """Only those that a client acts on."""
    type: Literal["json", "events", "text", "base64"]
    """How `body` holds the content."""
    body: Json
    cut: bool = False
    """Whether the agent closed the stream before its end; `body` holds what had come."""

    @classmethod
    def out_of_time(cls) -> StoredResponse:
        """In place of an answer that had not come when the run's time was over."""
        return cls(status=OUT_OF_TIME, type="text", body="", cut=True)

    @property
    def is_out_of_time(self) -> bool:
        """Whether it stands in place of such an answer."""
        return self.status == OUT_OF_TIME


class HeaderLine(_Written):
    """First line: which cell this is, and what made it."""

    left_out = frozenset({"match", "source", "meta"})

    kind: Literal["header"] = "header"
    format: Literal[1] = FORMAT
    suite: str
    task: str
    repeat: int
    task_digest: str
    versions: dict[str, str]
    match: Literal["request", "position"] = "request"
    """Whether answers are found by their request, or given in order (imported conversations)."""
    source: str | None = None
    """What an imported cassette was made from."""
    meta: JsonObject | None = None
    """What the imported file said about itself."""


class ParametersLine(Record):
    """Everything of a request but its conversation; each set stands once."""

    kind: Literal["parameters"] = "parameters"
    id: str
    endpoint: str
    body: JsonObject


class InteractionLine(_Written):
    """A request and its answer."""

    left_out = frozenset({"sent", "first_byte_s", "repeats", "model", "fingerprint", "usage"})

    kind: Literal["interaction"] = "interaction"
    id: str
    """`REQUEST.ORDINAL`, and `.NUMBER` more where variants kept different answers to it."""
    sent: str | None = None
    """Digest of the model call as it was sent, where nothing of it was changed to be kept: it finds
    the answer to the same bytes without parsing them."""
    parent: str | None
    """Chain digest of the longest recorded conversation that this one continues."""
    chain: str
    """Chain digest of this conversation."""
    parameters: str
    variant: str
    """The variant that recorded it; others may use it too."""
    recorded_at: datetime
    latency_s: float
    """From the request to the end of the answer."""
    first_byte_s: float | None = None
    """From the request to the first byte of the answer; None where it was not streamed."""
    repeats: bool = False
    """Whether it answers every later request like it as well: an error that was never got over."""
    model: str | None = None
    """As in the answer; like the two below, early recordings have it here as well as there."""
    fingerprint: str | None = None
    usage: Json = None
    add: list[JsonObject]
    """The messages that come after the parent's."""
    response: StoredResponse

    @property
    def key(self) -> str:
        """`REQUEST.ORDINAL`: what it answers."""
        return ".".join(self.id.split(".")[:2])


def request_of(interaction: str) -> str:
    """The digest of the request that an interaction answers, from its id."""
    return interaction.partition(".")[0]


class StoredResult(_Written):
    """What a tool call gave."""

    left_out = frozenset({"asks", "together"})

    content: str
    status: Literal["ok", "failed", "raised", "timed_out"]
    duration_s: float
    asks: RunRequest | None = None
    """A signal, a suspension or a block; not written when there is none."""
    together: bool = False
    """Whether only what all calls of its turn gave together is known, and one of them holds it."""


class ToolLine(_Written):
    """A tool call and its result."""

    kind: Literal["tool"] = "tool"
    id: str
    interaction: str | None
    """The model call whose answer asked for it."""
    position: int
    """Index of the call in its turn."""
    ordinal: int = 0
    """Counts calls that are alike in all of this."""
    name: str
    identity: str
    """Digest of the tool's schema and settings."""
    timeout_s: float
    """What the call was allowed: under another timeout it may give something else."""
    sandbox: str | None
    variant: str
    arguments: JsonObject
    result: StoredResult


class VerdictLine(Record):
    """The verifier's word on a transcript."""

    kind: Literal["verdict"] = "verdict"
    id: str
    transcript_digest: str
    tests_digest: str
    variant: str
    verdict: Verdict


class TrialLine(Record):
    """A finished recording: which lines a variant's trial used. Its last one counts."""

    kind: Literal["trial"] = "trial"
    variant: str
    task_digest: str
    finished_at: datetime
    interactions: tuple[str, ...]
    tools: tuple[str, ...]
    verdicts: tuple[str, ...]


Line = Annotated[
    HeaderLine | ParametersLine | InteractionLine | ToolLine | VerdictLine | TrialLine,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[Line] = TypeAdapter(Line)


def encode_line(line: Line) -> bytes:
    """The bytes of a line, seal and line end included."""
    value = line.model_dump(mode="json")
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return seal(content.encode())


def seal(content: bytes) -> bytes:
    """A JSON object as a line: with its checksum as last key, and the line end."""
    body = content[:-1]
    return body + b',"sum":"' + _sum(body) + b'"}\n'


def is_sealed(raw: bytes) -> bool:
    """Whether a line (without line end) is what was written."""
    seal = _SEAL.fullmatch(raw[-_SEAL_LENGTH:])
    return seal is not None and seal[1] == _sum(raw[:-_SEAL_LENGTH])


def ends_with_seal(raw: bytes) -> bool:
    """Whether a line was written to its end, whatever has become of it since."""
    return _SEAL.search(raw[-2 * _SEAL_LENGTH :]) is not None


def decode_line(raw: bytes) -> Line:
    """Parse a sealed line (without line end).

    Raises:
        ValueError: one line that says what is wrong with it.
    """
    try:
        return _ADAPTER.validate_json(raw[:-_SEAL_LENGTH] + b"}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error


def other_format(raw: bytes) -> object:
    """The format number of a header that this version does not read; None if there is none."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and value.get("kind") == "header" and value.get("format") != FORMAT:
        return value.get("format", "unknown")
    return None


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_SUM_CHARS].encode()
