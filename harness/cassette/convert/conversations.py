"""Recorded conversations in files: which format they are in, and the model calls in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from harness.cassette.convert.atif import is_atif, read_atif
from harness.cassette.convert.chat_calls import Transcript, every_assistant, exchanges
from harness.cassette.convert.exchange import Exchange, Found
from harness.cassette.convert.times import read_time
from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import canonical_request, shallow, writable
from harness.cassette.response.keeping import keeping
from harness.errors import BadInputError
from harness.loader.reading import read_text
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject

KNOWN = (
    "ATIF (1.0 to 1.8)",
    'a list of {"episode", "prompt", "response"}',
    'JSON lines of {"request", "response", "duration_ms", "metadata"}',
    '{"messages": [...]}, one or one a line',
)
"""The formats that are read, in words."""

_GENERIC = frozenset(
    {"", "agent", "conversation", "llm_trajectory", "logs", "messages", "trajectory"}
)
"""Names of files and folders that say nothing: the folder above says more."""


_ENDINGS = frozenset({".json", ".jsonl", ".ndjson"})
"""Of the files of a folder that may be conversations."""


class _UnknownFormat(ValueError):
    """The file may be something else than a conversation."""


class _Episode(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    episode: int | None = None
    prompt: str
    response: str


_EPISODES: TypeAdapter[list[_Episode]] = TypeAdapter(list[_Episode])


def read_all(paths: Sequence[Path], redactor: Redactor) -> tuple[list[Found], list[Path]]:
    """The conversations in files and folders, and the files of folders that hold none.

    Raises:
        BadInputError: a file is damaged, one that is named itself is in none of the known formats,
            or a folder has no conversation.
    """
    found, others = [], []
    for path in paths:
        if not path.is_dir():
            found += read_conversations(path, redactor)
            continue
        inside = []
        files = (one for one in path.rglob("*") if one.suffix in _ENDINGS and one.is_file())
        for file in sorted(files):
            try:
                inside += _found(file, _values(file), redactor)
            except _UnknownFormat:
                others.append(file)
            except ValueError as error:
                raise BadInputError(f"{file}: {error}") from error
        if not inside:
            raise BadInputError(
                f"{path}: no recorded conversation is in this folder; known formats are:"
                f" {'; '.join(KNOWN)}"
            )
        found += inside
    return found, others


def read_conversations(path: Path, redactor: Redactor) -> list[Found]:
    """The conversations in a file, without secrets.

    Raises:
        BadInputError: the file cannot be read, or is in none of the known formats; the text says
            where and why.
    """
    values = _values(path)
    try:
        return _found(path, values, redactor)
    except ValueError as error:
        raise BadInputError(f"{path}: {error}") from error


def read_transcript(path: Path) -> Transcript:
    """The one conversation in a file that tells it as a whole: ATIF, episodes, or messages.

    Raises:
        BadInputError: the file cannot be read, or is in none of these formats.
    """
    values = _values(path)
    first = next(iter(values.values()))
    try:
        if len(values) == 1 and isinstance(first, dict) and is_atif(first):
            return read_atif(first)[0]
        if len(values) == 1 and _is_episodes(first):
            return _episodes(first)
        if len(values) == 1 and isinstance(first, dict) and "messages" in first:
            return _whole(first)[0]
    except ValueError as error:
        raise BadInputError(f"{path}: {error}") from error
    raise BadInputError(f"{path}: no known format of a conversation; known are: {'; '.join(KNOWN)}")


def _found(path: Path, numbered: Mapping[int, Json], redactor: Redactor) -> list[Found]:
    names = (path.stem, *(parent.name for parent in path.absolute().parents))
    name = next((name for name in names if name not in _GENERIC), path.stem)
    first = next(iter(numbered.values()))
    for keys, read in ((("request", "response"), _exchanged), (("messages",), _every_messages)):
        if isinstance(first, dict) and first.keys() >= {*keys}:
            return read(name, path, _objects(numbered, keys), redactor)
    if len(numbered) == 1 and isinstance(first, dict) and is_atif(first):
        transcript, meta, left_out = read_atif(first)
        return [_told(name, path, "ATIF", transcript, meta, redactor, left_out)]
    if len(numbered) == 1 and _is_episodes(first):
        return [_told(name, path, "episodes", _episodes(first), {}, redactor)]
    raise _UnknownFormat(f"no known format; known are: {'; '.join(KNOWN)}")


def _objects(numbered: Mapping[int, Json], keys: Sequence[str]) -> dict[int, JsonObject]:
    """What is on each line, where all of them are like the first."""
    found: dict[int, JsonObject] = {}
    for number, value in numbered.items():
        if not isinstance(value, dict) or not value.keys() >= {*keys}:
            wanted = " and ".join(map(repr, keys))
            raise ValueError(f"line {number}: expected an object with {wanted}, as on line 1")
        found[number] = value
    return found


def _values(path: Path) -> dict[int, Json]:
    """The JSON value of a file, or those of its lines, by the number of the line."""
    text = read_text(path, purpose="recorded conversations").removeprefix("\ufeff")
    if not text.strip():
        raise BadInputError(f"{path}: the file is empty")
    try:
        return {1: _parsed(text)}
    except ValueError as error:
        # Not splitlines: texts may hold line ends that JSON does not know.
        lines = text.split("\n")
        whole = error
    if len([line for line in lines if line.strip()]) < 2 or not _is_json(lines[0]):
        raise BadInputError(f"{path}: not JSON: {whole}")
    found = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found[number] = _parsed(line)
            except ValueError as error:
                raise BadInputError(f"{path}:{number}: not JSON: {error}") from error
    return found


def _parsed(text: str) -> Json:
    try:
        return writable(shallow(json.loads(text, parse_constant=_refuse)))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number in JSON; replace it, by null if it means nothing")


def _is_json(line: str) -> bool:
    try:
        _parsed(line)
    except ValueError:
        return False
    return True


def _told(
    name: str,
    path: Path,
    source: str,
    transcript: Transcript,
    meta: JsonObject,
    redactor: Redactor,
    left_out: Sequence[str] = (),
) -> Found:
    unanswered = transcript.unanswered
    found = exchanges(transcript, redactor)
    if unanswered:
        left_out = [*left_out, f"messages after the last answer: {unanswered}"]
    task = meta.get("task")
    return Found(
        task if isinstance(task, str) and task else name,
        path,
        source,
        found,
        _clean(meta, redactor),
        tuple(left_out),
    )


def _every_messages(
    name: str, path: Path, values: Mapping[int, JsonObject], redactor: Redactor
) -> list[Found]:
    found = []
    for number, value in values.items():
        try:
            found.append(_messages(name, path, value, redactor))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}" if len(values) > 1 else error) from error
    return found


def _messages(name: str, path: Path, value: JsonObject, redactor: Redactor) -> Found:
    transcript, meta = _whole(value)
    return _told(name, path, "messages", transcript, meta, redactor)


def _whole(value: JsonObject) -> tuple[Transcript, JsonObject]:
    """The conversation in `{"messages": [...]}`, and what the object says about it."""
    messages = value["messages"]
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages: expected a list of messages")
    objects = [message for message in messages if isinstance(message, dict)]
    if len(objects) < len(messages):
        raise ValueError("messages: each must be an object")
    inner = value.get("meta")
    meta = {k: v for k, v in value.items() if k not in ("messages", "meta")}
    meta |= inner if isinstance(inner, dict) else {}
    model = meta.get("model")
    return every_assistant(objects, model if isinstance(model, str) else None), meta


def _is_episodes(value: Json) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and {"prompt", "response"} <= item.keys() for item in value
    )


def _episodes(value: Json) -> Transcript:
    try:
        episodes = _EPISODES.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    _check_numbers([episode.episode for episode in episodes])
    messages: list[JsonObject] = []
    for episode in episodes:
        messages.append({"role": "user", "content": episode.prompt})
        messages.append({"role": "assistant", "content": episode.response})
    return every_assistant(messages, None)


def _check_numbers(numbers: Sequence[int | None]) -> None:
    """Refuse a conversation with a gap: what it sends next would answer something else.

    One number may stand several times, as where a handoff between agents is told as well.

    Raises:
        ValueError: the numbers do not go up one by one, from 0 or 1.
    """
    last = 0
    for number in numbers:
        if number is not None and number not in (last, last + 1):
            raise ValueError(f"after episode {last} comes episode {number}; one may be missing")
        last = last if number is None else number


def _exchanged(
    name: str, path: Path, values: Mapping[int, JsonObject], redactor: Redactor
) -> list[Found]:
    """A log of calls as they went over the wire, in whatever vendor's format."""
    found: list[Exchange] = []
    dropped = 0
    meta: Json = None
    for number, value in values.items():
        exchange = _exchange(value, f"line {number}", redactor)
        if keeping(exchange.response.status, keep_errors=False) == "held":
            dropped += 1
            continue
        found.append(exchange)
        meta = meta or value.get("metadata")
    if not found:
        raise ValueError("no call in it was answered")
    left_out = (f"failed calls that were tried again: {dropped}",) if dropped else ()
    return [Found(name, path, "call log", tuple(found), _clean(meta, redactor), left_out)]


def _clean(meta: Json, redactor: Redactor) -> JsonObject:
    clean = redactor.json(meta)
    return clean if isinstance(clean, dict) else {}


def _exchange(value: JsonObject, where: str, redactor: Redactor) -> Exchange:
    request, response = value["request"], value["response"]
    if not isinstance(request, dict) or not isinstance(response, dict):
        raise ValueError(f"{where}: 'request' and 'response' must be objects")
    asked, answered = request.get("body", request), response.get("body", response)
    status = response.get("status_code", 200)
    if isinstance(status, bool) or not isinstance(status, int):
        raise ValueError(f"{where}: response.status_code is {status!r}, not a number")
    if not isinstance(asked, dict) or not asked:
        raise ValueError(f"{where}: request.body: expected an object")
    path = _path(request.get("path"), answered)
    body = json.dumps(asked, ensure_ascii=False).encode()
    identity = canonical_request("POST", path, body)
    if not identity.is_model_call or not identity.messages:
        raise ValueError(f"{where}: no request to a model in a known vendor's format")
    milliseconds = value.get("duration_ms")
    return Exchange(
        identity.redacted(redactor.json),
        StoredResponse(
            status=status,
            headers={"content-type": "application/json"},
            type="json",
            body=redactor.json(answered),
        ),
        latency_s=round(milliseconds / 1000, 4) if isinstance(milliseconds, int | float) else 0.0,
        recorded_at=read_time(request.get("timestamp")),
    )


_BY_ANSWER: tuple[tuple[Callable[[JsonObject], bool], str], ...] = (
    (lambda answer: "choices" in answer, "/chat/completions"),
    (lambda answer: answer.get("type") == "message", "/messages"),
    (lambda answer: answer.get("object") == "response", "/responses"),
)
"""The endpoint that gives such an answer: gateways translate, and log the path they were asked."""


def _path(asked: Json, answer: Json) -> str:
    if isinstance(answer, dict):
        for gives, path in _BY_ANSWER:
            if gives(answer):
                return path
    return asked if isinstance(asked, str) else "/chat/completions"
