"""What lets a tool call run, rule by rule, and the enforcement points that allow or refuse it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from harness.errors import ConfigurationError
from harness.loop.governance import Governor
from harness.protocols import Check
from harness.schema.loop_config import Governance
from harness.values import Effect, Judgement, PendingCall


def pending(*effects: Effect, name: str = "tool", unknown: bool = False) -> PendingCall:
    return PendingCall("call-1", name, {}, None if unknown else effects)


def judged(governance: Governance, *effects: Effect, unknown: bool = False) -> Judgement:
    return Governor(governance).judge(pending(*effects, unknown=unknown))


def read(path: str) -> Effect:
    return Effect("read", path)


def write(path: str) -> Effect:
    return Effect("write", path, 3)


def test_without_governance_everything_runs():
    effects = [write("/etc/passwd"), Effect("command", "rm -rf /"), Effect("network", "evil.com")]
    assert Governor().judge(pending(*effects)) == Judgement("allowed")
    assert Governor().judge(pending(unknown=True)) == Judgement("allowed")


PATHS = Governance(paths=("public", "/workspace/notes.txt"))


@pytest.mark.parametrize("make", [read, write], ids=["EF-01 file read", "EF-02 file write"])
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("public", True),
        ("public/a/b.txt", True),
        ("./public//a", True),
        ("/workspace/public/a", True),
        ("//workspace/public/a", True),
        ("private/../public/a", True),
        ("notes.txt", True),
        ("publication", False),
        ("public/../private/a", False),
        ("../etc/passwd", False),
        ("/workspace/../etc/passwd", False),
        ("/etc/passwd", False),
        ("/public", False),
        (".", False),
        ("", False),
        ("public/\0", False),
    ],
)
def test_ef_01_and_ef_02_only_listed_paths_are_read_and_written(
    make: type[Effect], path: str, allowed: bool
):
    judgement = judged(PATHS, make(path))  # type: ignore[arg-type, call-arg]
    assert judgement.verdict == ("allowed" if allowed else "denied")
    if not allowed:
        assert judgement.reason == f"the path {path!r} is not allowed"


def test_a_link_on_the_host_does_not_lead_out_of_a_listed_folder(tmp_path: Path):
    (tmp_path / "open").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "open" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "way").symlink_to(tmp_path / "open")
    governance = Governance(paths=(str(tmp_path / "way"),))
    assert judged(governance, read(f"{tmp_path}/open/a")).verdict == "allowed"
    assert judged(governance, read(f"{tmp_path}/way/link/a")).verdict == "denied"
    assert judged(governance, read(f"{tmp_path}/way/link/../open/a")).verdict == "allowed"


def test_every_path_may_be_listed():
    governance = Governance(paths=("/",))
    assert judged(governance, read("/etc/passwd"), write("a")).verdict == "allowed"


def test_ef_03_only_listed_programs_are_started():
    governance = Governance(commands=("ls", "cat"))
    assert judged(governance, Effect("command", "ls | cat")).verdict == "allowed"
    judgement = judged(governance, Effect("command", "ls; rm x"))
    assert judgement == Judgement("denied", "the program 'rm' is not allowed")


def test_ef_04_only_listed_hosts_are_reached():
    governance = Governance(domains=("example.com",))
    assert judged(governance, Effect("network", "API.example.com.")).verdict == "allowed"
    judgement = judged(governance, Effect("network", "evilexample.com"))
    assert judgement == Judgement("denied", "the host 'evilexample.com' is not allowed")


@pytest.mark.parametrize(
    ("effects", "governance"),
    [
        ([read("a"), read("/etc/passwd")], Governance(paths=("a",))),
        ([Effect("network", "a.b"), Effect("network", "c.d")], Governance(domains=("a.b",))),
        ([Effect("command", "ls"), Effect("command", "rm")], Governance(commands=("ls",))),
        ([read("a")], Governance(paths=())),
        ([Effect("command", "ls")], Governance(commands=())),
        ([Effect("network", "a.b")], Governance(domains=())),
    ],
)
def test_one_effect_off_the_list_denies_the_call_and_an_empty_list_allows_nothing(
    effects: Sequence[Effect], governance: Governance
):
    assert judged(governance, *effects).verdict == "denied"


READING = pending(read("a"), Effect("network", "a.b"))
CHANGING = {
    "tool writes a": pending(write("a")),
    "tool runs a command": pending(Effect("command", "ls")),
    "tool does not say what it does": pending(unknown=True),
}


@pytest.mark.parametrize("what", CHANGING)
def test_autonomy_holds_back_what_changes_something_or_does_not_say(what: str):
    verdicts = {}
    for level in ("read_only", "supervised", "full"):
        governor = Governor(Governance(autonomy=level))
        assert governor.judge(READING) == governor.judge(pending()) == Judgement("allowed")
        verdicts[level] = governor.judge(CHANGING[what])
    assert verdicts == {
        "read_only": Judgement("denied", f"only reading is allowed, and {what}"),
        "supervised": Judgement("warned", what),
        "full": Judgement("allowed"),
    }


@pytest.mark.parametrize(
    ("scopes", "verdict"),
    [
        (("tools:execute",), "allowed"),
        (("agents:invoke", "tools:tool"), "allowed"),
        (("tools:tools", "agents:invoke"), "denied"),
        ((), "denied"),
    ],
)
def test_a_call_needs_the_scope_of_its_tool_or_of_all(scopes: tuple[str, ...], verdict: str):
    judgement = judged(Governance(scopes=scopes))
    assert judgement.verdict == verdict
    if verdict == "denied":
        assert judgement.reason == ("the caller has neither the scope tools:execute nor tools:tool")


def test_calls_are_limited_by_the_second_and_by_the_minute():
    now = 0.0
    governor = Governor(Governance(per_minute=4, burst=2), clock=lambda: now)
    seen = []
    for now in (0.0, 0.5, 0.9, 1.0, 1.2, 1.9, 30.0, 59.9, 60.0, 60.4, 60.5):
        judgement = governor.judge(pending())
        seen.append((now, judgement.reason.removeprefix("at most ") or judgement.verdict))
    assert seen == [
        (0.0, "allowed"),
        (0.5, "allowed"),
        (0.9, "2 tool calls a second are allowed"),
        (1.0, "allowed"),
        (1.2, "2 tool calls a second are allowed"),
        (1.9, "allowed"),
        (30.0, "4 tool calls a minute are allowed"),
        (59.9, "4 tool calls a minute are allowed"),
        (60.0, "allowed"),
        (60.4, "4 tool calls a minute are allowed"),
        (60.5, "allowed"),
    ]


def test_a_call_that_another_rule_denies_counts_towards_the_rate():
    governor = Governor(Governance(burst=1, autonomy="read_only"), clock=lambda: 0.0)
    assert governor.judge(pending(write("a"))).reason.startswith("only reading is allowed")
    assert governor.judge(pending()).reason == "at most 1 tool calls a second are allowed"


def test_judging_a_call_again_does_not_count_as_another():
    governor = Governor(Governance(per_minute=2, autonomy="read_only"), clock=lambda: 0.0)
    assert governor.judge(pending()).verdict == "allowed"
    for _ in range(3):
        assert governor.judge(pending(), again=True).verdict == "allowed"
        assert governor.judge(pending(write("a")), again=True).verdict == "denied"
    assert governor.judge(pending()).verdict == "allowed"
    assert governor.judge(pending(), again=True).verdict == "allowed"
    assert governor.judge(pending()).verdict == "denied"


def says(verdict: Literal["allowed", "warned", "denied", "escalated", "blocked"]) -> Check:
    return lambda call: Judgement(verdict, f"{verdict} by me")


def test_own_checks_are_asked_in_order_and_the_first_that_stops_the_call_wins():
    asked: list[str] = []

    def watch(call: PendingCall) -> Judgement:
        asked.append(call.name)
        return Judgement("allowed")

    for stopping in ("denied", "escalated", "blocked"):
        checks = (watch, says("warned"), says(stopping), watch, says("denied"))
        judgement = Governor(checks=checks).judge(pending())
        assert judgement == Judgement(stopping, f"{stopping} by me")
    assert asked == ["tool"] * 3


def test_the_first_warning_is_kept_when_nothing_stops_the_call():
    governor = Governor(
        Governance(autonomy="supervised"), (says("warned"), says("allowed"), says("warned"))
    )
    assert governor.judge(pending(read("a"))) == Judgement("warned", "warned by me")
    assert governor.judge(pending(write("a"))) == Judgement("warned", "tool writes a")


def test_own_checks_are_not_asked_about_a_call_that_is_denied_anyway():
    def never(call: PendingCall) -> Judgement:
        raise AssertionError("asked")

    governor = Governor(Governance(scopes=()), (never,))
    assert "scope" in governor.judge(pending()).reason


def test_a_check_that_fails_denies_the_call():
    def fail(call: PendingCall) -> Judgement:
        raise KeyError("policy")

    assert Governor(checks=(fail,)).judge(pending()) == Judgement(
        "denied", "a check failed (KeyError: 'policy')"
    )
    silent: Check = lambda call: None  # type: ignore[assignment, return-value]  # noqa: E731
    assert Governor(checks=(silent,)).judge(pending()) == Judgement(
        "denied", "a check failed (it gave a NoneType and no Judgement)"
    )


@pytest.mark.parametrize(
    ("governance", "words"),
    [
        (Governance(commands=("git status",)), ["governance.commands", "'git status'"]),
        (Governance(commands=("",)), ["governance.commands", "''"]),
        (Governance(paths=("",)), ["governance.paths", "''"]),
        (Governance(domains=("https://a.b",)), ["governance.domains", "'https://a.b'"]),
        (Governance(domains=("*.a.b",)), ["governance.domains", "'*.a.b'"]),
    ],
)
def test_an_entry_that_can_never_match_is_refused(governance: Governance, words: list[str]):
    with pytest.raises(ConfigurationError) as caught:
        Governor(governance)
    assert all(word in str(caught.value) for word in words)
