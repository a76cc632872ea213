"""Schemas that people write, and values that models write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.schema.json_schema import schema_problem, schema_violation
from harness.schema.record import Json, JsonObject

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def nested(levels: int) -> JsonObject:
    schema: JsonObject = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {}),
        ({"$schema": DRAFT_7, "definitions": {"a": {}}, "$ref": "#/definitions/a"}, 1),
        ({"$schema": DRAFT_7.rstrip("#")}, 1),
        ({"$ref": DRAFT_7}, {"type": "object"}),
        ({"$defs": {"n": {"$anchor": "n", "type": "integer"}}, "items": {"$ref": "#n"}}, [1]),
        ({"$id": "http://a.b/c", "$defs": {"d": {"$id": "d"}}, "items": {"$ref": "d"}}, [1]),
        ({"properties": {"child": {"$ref": "#"}}}, {"child": {"child": {}}}),
        ({"properties": {"$ref": {"type": "string"}}}, {"$ref": "#/gone"}),
        ({"const": {"$ref": "#/gone"}}, {"$ref": "#/gone"}),
    ],
)
def test_a_schema_that_works_has_no_problem(schema: JsonObject, value: Json):
    assert schema_problem(schema) is None
    assert schema_violation(value, schema) is None


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "objekt"}, "objekt"),
        ({"properties": {"a": {"pattern": "["}}}, "regex"),
        ({"$ref": "#/definitions/gone"}, "$ref '#/definitions/gone' leads nowhere in it"),
        ({"items": {"$ref": "#gone"}}, "$ref '#gone' leads nowhere"),
        ({"$ref": "gone.json"}, "$ref 'gone.json' leads nowhere"),
        ({"$ref": "http://["}, "leads nowhere"),
        ({"$dynamicRef": "#gone"}, "$dynamicRef '#gone' leads nowhere"),
        (
            {"items": {"$ref": "#/more/a"}, "more": {"a": {"items": {"$ref": "#/gone"}}}},
            "$ref '#/gone' leads nowhere",
        ),
        ({"$ref": "#"}, "leads back to itself"),
        (nested(3000), "nested too deeply"),
        ({"minimum": float("inf")}, "not JSON compliant"),
        ({"$schema": "http://a.b/c"}, "unknown $schema 'http://a.b/c'; leave it out"),
        ({"$schema": ["x"]}, "unknown $schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_told_apart(schema: JsonObject, words: str):
    assert words in str(schema_problem(schema))


@pytest.fixture
def schema_server() -> Iterator[tuple[str, list[str]]]:
    """A URL that serves a schema, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/schema.json", asked
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_reference_to_another_machine_is_never_fetched(schema_server: tuple[str, list[str]]):
    url, asked = schema_server
    assert schema_problem({"$ref": url}) == f"$ref {url!r} leads nowhere in it"
    assert "Unresolvable" in str(schema_violation({}, {"$ref": url}))
    assert asked == []


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ({"a": [1, "x"]}, {"properties": {"a": {"items": {"type": "integer"}}}}, "['a'][1]: 'x'"),
        (10**400, {"multipleOf": 0.5}, "it cannot be checked: OverflowError"),
        ({}, {"$ref": "#/gone"}, "it cannot be checked"),
        ({}, {"$ref": "#"}, "it cannot be checked: RecursionError"),
    ],
)
def test_whatever_is_wrong_is_put_in_words(value: Json, schema: JsonObject, words: str):
    assert str(schema_violation(value, schema)).startswith(words)
