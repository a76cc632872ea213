from __future__ import annotations

import json
import logging

import pytest

from harness.loop.audit import AuditLog
from harness.redaction import PLACEHOLDER
from harness.schema.record import JsonObject

KEY = "sk-proj-0123456789abcdefghijkl"


def log(audit: AuditLog, arguments: JsonObject, error: str | None = None) -> None:
    audit.executed(
        iteration=2,
        tool="shell",
        arguments=arguments,
        verdict="approved",
        error=error,
        duration_s=0.25,
    )


def entries(caplog: pytest.LogCaptureFixture) -> list[JsonObject]:
    return [json.loads(record.message) for record in caplog.records]


def test_an_execution_is_one_json_object_without_secrets(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "harness.audit")
    arguments: JsonObject = {"command": f"curl -H {KEY}", "n": [1, None]}
    log(AuditLog("run-1"), arguments)
    log(AuditLog("run-1"), {}, error=f"bad key {KEY} ☃")
    common = {"run_id": "run-1", "iteration": 2, "tool": "shell", "verdict": "approved"}
    redacted = {"command": f"curl -H {PLACEHOLDER}", "n": [1, None]}
    assert entries(caplog) == [
        {**common, "arguments": redacted, "success": True, "error": None, "duration_s": 0.25},
        {
            **common,
            "arguments": {},
            "success": False,
            "error": f"bad key {PLACEHOLDER} ☃",
            "duration_s": 0.25,
        },
    ]
    assert arguments == {"command": f"curl -H {KEY}", "n": [1, None]}


def test_the_caller_may_say_what_is_left_out(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "harness.audit")
    log(AuditLog("run-1", lambda value: "nothing"), {"a": 1})
    assert entries(caplog)[0]["arguments"] == "nothing"


def test_nothing_is_written_unless_it_is_wanted(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "harness.audit")
    log(AuditLog("run-1"), {})
    assert caplog.records == []
