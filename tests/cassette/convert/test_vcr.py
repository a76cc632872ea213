from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import openai
import pytest
import requests
import vcr  # type: ignore[import-untyped]
import yaml

import harness.cassette
from harness.cassette.convert.reading_vcr import read_vcr
from harness.cassette.convert.vcr import exchange_from_vcr
from harness.cassette.convert.writing import targets, write
from harness.cassette.file.view import read
from harness.cassette.response.body import vcr_response
from harness.errors import BadInputError
from harness.redaction import Redactor
from tests.cassette.convert.samples import ask, in_file
from tests.cassette.loopback import ask_openai, upstream, user

NO_SECRETS = Redactor({})
CHAT = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "hi ✓"}]}
BODY = json.dumps(ASKED, ensure_ascii=False)


def completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    return {"id": "c", "object": "chat.completion", "created": 1, "choices": [choice]}


ANSWER = json.dumps(completion("ho ✓"), ensure_ascii=False)
OK = {"code": 200, "message": "OK"}
JSON_HEADERS = {"Content-Type": ["application/json"]}
GZIP_HEADERS = {**JSON_HEADERS, "Content-Encoding": ["gzip"]}


def request(body: Any = BODY, uri: str = CHAT, method: str = "POST") -> dict[str, Any]:
    return {"method": method, "uri": uri, "headers": JSON_HEADERS, "body": body}


def response(body: Any, headers: Any = JSON_HEADERS) -> dict[str, Any]:
    return {"status": OK, "headers": headers, "body": body}


def cassette(*interactions: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    pairs = [{"request": asked, "response": answered} for asked, answered in interactions]
    return {"version": 1, "interactions": pairs}


def imported(path: Path, out: Path, redactor: Redactor = NO_SECRETS) -> list[Path]:
    chosen = targets(read_vcr([path], redactor), out)
    for target in chosen:
        write(target, match="request", redactor=redactor)
    return [target.path for target in chosen]


SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "texts": (request(), response({"string": ANSWER})),
    "bytes": (request(BODY.encode()), response({"string": ANSWER.encode()})),
    "gzip": (request(), response({"string": gzip.compress(ANSWER.encode())}, GZIP_HEADERS)),
    "base64": (
        request(),
        response({"base64_string": base64.b64encode(ANSWER.encode()).decode()}),
    ),
    "gzip in base64": (
        request(),
        response(
            {"base64_string": base64.b64encode(gzip.compress(ANSWER.encode())).decode()},
            GZIP_HEADERS,
        ),
    ),
    "decoded, with the header of before": (
        request(),
        response({"string": ANSWER}, GZIP_HEADERS),
    ),
    "httpx of vcrpy 4 and 5": (
        request(),
        {
            "status_code": 200,
            "http_version": "HTTP/1.1",
            "headers": GZIP_HEADERS,
            "content": ANSWER,
        },
    ),
    "one header value": (
        request(),
        response({"string": ANSWER}, {"content-type": "application/json"}),
    ),
    "JSON bodies": (request(ASKED), response(completion("ho ✓"))),
    "parsed bodies": (
        {**request(""), "parsed_body": ASKED},
        {"status": OK, "headers": JSON_HEADERS, "parsed_body": completion("ho ✓")},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_body_is_replayed_through_the_sdk(shape: str, tmp_path: Path):
    source = in_file(tmp_path / "a.yaml", yaml.safe_dump(cassette(SHAPES[shape])))
    [made] = imported(source, tmp_path / "out")
    # Where the server was is no part of what identifies a call.
    with harness.cassette.use(made):
        assert ask([{"role": "user", "content": "hi ✓"}])["content"] == "ho ✓"
    assert read(made).header.match == "request"


def test_json_cassettes_are_read_as_well(tmp_path: Path):
    source = in_file(tmp_path / "a.json", cassette(SHAPES["texts"]))
    [made] = imported(source, tmp_path / "out")
    with harness.cassette.use(made):
        assert ask([{"role": "user", "content": "hi ✓"}])["content"] == "ho ✓"


@pytest.mark.parametrize("stream", [False, True])
def test_what_stock_vcrpy_records_today_is_replayed(stream: bool, tmp_path: Path):
    path = tmp_path / "recorded.yaml"

    def call(port: int, text: str) -> str:
        if not stream:
            return ask_openai(port, user(text))
        arguments: Any = {"model": "tiny", "messages": [user(text)], "stream": True}
        url = f"http://127.0.0.1:{port}/v1"
        with openai.OpenAI(api_key="unused", base_url=url, max_retries=0) as client:
            chunks = list(client.chat.completions.create(**arguments))
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)

    with upstream() as server:
        server.compress = not stream
        with vcr.use_cassette(str(path), match_on=["method", "uri", "body"]):
            recorded = [call(server.port, "one"), call(server.port, "two")]
            recorded.append(requests.get(f"http://127.0.0.1:{server.port}/binary", timeout=9).text)
            port = server.port
    [made] = imported(path, tmp_path / "out")
    with harness.cassette.use(made) as session:
        again = [call(port, "one"), call(port, "two")]
        again.append(requests.get(f"http://127.0.0.1:{port}/binary", timeout=9).text)
    assert again == recorded
    assert session.served == 3


BODIES = {
    "a file": "!!python/object/new:_io.BytesIO {{state: !!python/tuple [{0}, 0, null]}}",
    "an iterator": "!!python/object/apply:builtins.iter {{args: [[{0}]]}}",
    "pieces": "!!python/tuple [{0}]",
    "an old text": "!!python/unicode {0}",
}


@pytest.mark.parametrize("kind", BODIES)
def test_bodies_that_were_no_texts_are_read(kind: str, tmp_path: Path):
    body = BODIES[kind].format(json.dumps(json.dumps(ASKED)))
    text = (
        f"version: 1\ninteractions:\n- request: {{method: POST, uri: '{CHAT}', body: {body}}}\n"
        f"  response: {json.dumps(response({'string': ANSWER}))}\n"
    )
    [made] = imported(in_file(tmp_path / "a.yaml", text), tmp_path / "out")
    with harness.cassette.use(made):
        assert ask([{"role": "user", "content": "hi ✓"}])["content"] == "ho ✓"


def test_repeated_requests_get_their_answers_in_the_recorded_order(tmp_path: Path):
    answers = [response({"string": json.dumps(completion(text))}) for text in ("a", "b", "c")]
    pairs = [(request(), answer) for answer in answers]
    source = in_file(tmp_path / "a.yaml", yaml.safe_dump(cassette(*pairs)))
    [made] = imported(source, tmp_path / "out")
    with harness.cassette.use(made):
        said = [ask([{"role": "user", "content": "hi ✓"}])["content"] for _ in range(3)]
    assert said == ["a", "b", "c"]


def test_a_folder_becomes_a_folder(tmp_path: Path):
    data = yaml.safe_dump(cassette(SHAPES["texts"]))
    for name in ("test_a/test_one.yaml", "test_a/test_two.yml", "test_b/test_one.json"):
        in_file(tmp_path / "in" / name, data if "json" not in name else cassette(SHAPES["texts"]))
    in_file(tmp_path / "in" / "README.md", "not a cassette")
    out = tmp_path / "out"
    assert imported(tmp_path / "in", out) == [
        out / "test_a" / "test_one" / "0.jsonl",
        out / "test_a" / "test_two" / "0.jsonl",
        out / "test_b" / "test_one" / "0.jsonl",
    ]
    (tmp_path / "nothing").mkdir()
    with pytest.raises(BadInputError, match=r"no file in it ends with \.json, \.yaml, \.yml"):
        imported(tmp_path / "nothing", out)


def test_secrets_are_in_no_byte_of_what_is_made(tmp_path: Path):
    key, known = "sk-proj-abcdefghij0123456789ABCDEF", "a-plain-pass-phrase"
    asked = request(json.dumps({**ASKED, "user": known, "key": key}))
    asked["headers"] = {"authorization": [f"Bearer {key}"], "x-api-key": [known]}
    answered = response({"string": json.dumps(completion(f"{key} {known}"))})
    other = request("", f"https://example.org/a?token={known}", "GET")
    page = response(
        {"string": f"{known} {key}".encode() + b"\xff"},
        {"Set-Cookie": [key], "x-request-id": [known]},
    )
    source = in_file(
        tmp_path / "a.yaml", yaml.safe_dump(cassette((asked, answered), (other, page)))
    )
    [made] = imported(source, tmp_path / "out", Redactor({"X_API_KEY": known}))
    data = made.read_bytes()
    for secret in (key.encode(), known.encode(), base64.b64encode(known.encode())[:20]):
        assert secret not in data
    assert len(read(made).interactions) == 2


EMPTY = {"version": 1, "interactions": []}
RUNS = "!!python/object/apply:os.system ['touch {0}']"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        (json.dumps(EMPTY), "the cassette is empty"),
        ("interactions: []\nversion: 1\n", "the cassette is empty"),
        ("interactions: [{\n", "not YAML that can be read"),
        ('{"interactions": [', "not JSON"),
        ("just a text", "not a vcrpy cassette"),
        ("- request: {}\n  response: {}\n", r"before 1\.0; run: python -m vcr\.migration"),
        ("version: 2\ninteractions: [{}]\n", "version 2 is not known"),
        ("version: 1\ninteractions: [5]\n", "interaction 1: not a mapping"),
        ("version: 1\ninteractions: [{}]\n", "interaction 1: it has no 'request'"),
        (
            json.dumps(cassette((request(), response({"string": "x"})), ({}, {}))),
            "interaction 2: the request has no 'method' and 'uri'",
        ),
        (
            json.dumps(cassette((request(), {"status": {"code": "ok"}}))),
            "interaction 1: the response's status is 'ok'",
        ),
        (
            json.dumps(cassette((request(), response({"base64_string": "?"})))),
            "interaction 1: the response's 'base64_string' is not base64",
        ),
        (
            json.dumps(cassette((request(), response({"string": "x"}, "text")))),
            "interaction 1: the response's 'headers' are no mapping",
        ),
        (
            "version: 1\ninteractions:\n"
            "- request: {method: GET, uri: 'http://a/', body: !!set {x}}\n"
            "  response: {status: {code: 200}, body: {string: x}}\n",
            "interaction 1: a body is a set",
        ),
        ("[" * 50_000, "nested too deeply"),
        ('{"a":' * 50_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_cassette_is_an_error_with_its_name(
    content: str, problem: str, tmp_path: Path
):
    path = in_file(tmp_path / "a.yaml", content)
    with pytest.raises(BadInputError, match=problem) as raised:
        read_vcr([path], NO_SECRETS)
    assert str(path) in str(raised.value)


def test_nothing_in_a_cassette_is_executed(tmp_path: Path):
    mark = tmp_path / "executed"
    path = in_file(tmp_path / "a.yaml", f"version: 1\ninteractions: [{RUNS.format(mark)}]\n")
    with pytest.raises(BadInputError, match="not YAML that can be read"):
        read_vcr([path], NO_SECRETS)
    assert not mark.exists()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path):
    with pytest.raises(BadInputError, match="no such file; it holds"):
        read_vcr([tmp_path / "none.yaml"], NO_SECRETS)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadInputError, match="not UTF-8 text"):
        read_vcr([tmp_path / "b.yaml"], NO_SECRETS)


@pytest.mark.parametrize("content", [b"plain", b"\xff\x00", ANSWER.encode()])
def test_an_answer_goes_in_and_out_of_vcrpys_shape(content: bytes):
    given = {"request": request(), "response": response({"string": content})}
    shape = vcr_response(exchange_from_vcr(given, NO_SECRETS).response)
    assert shape["status"] == {"code": 200, "message": "OK"}
    assert shape["headers"] == {"content-type": ["application/json"]}
    if content == ANSWER.encode():
        assert json.loads(shape["body"]["string"]) == json.loads(content)
    else:
        assert shape["body"]["string"] == content
