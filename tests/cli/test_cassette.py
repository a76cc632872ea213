"""`harness cassette`: ls, show, diff, audit, fix, prune, and show as git's textconv driver."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.tiny import LINES, command_line, make_suite, model_server

LINES_0 = Path("cassettes/tiny/lines/0.jsonl")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def without_variant(name: str) -> None:
    """Remove a variant from the suite; it is the last one in it."""
    suite = Path("suites/tiny/suite.toml")
    kept, _, _ = suite.read_text(encoding="utf-8").rpartition(f'[[variants]]\nname = "{name}"')
    suite.write_text(kept, encoding="utf-8")


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("cassettes").rglob("*") if path.is_file()}


def test_ls_lists_and_sums(recorded, harness):
    done = harness("cassette", "ls")
    assert done.code == 0
    assert "cassettes/tiny/fruit/0.jsonl" in done.out
    assert "4 cassettes, " in done.out
    listed = harness("cassette", "ls", "cassettes/tiny/lines", "--json").json["cassettes"]
    assert [(one["task"], one["repeat"]) for one in listed] == [("lines", 0), ("lines", 1)]
    assert listed[0]["variants"] == ["confirmed", "plain"]
    assert (listed[0]["interactions"], listed[0]["tools"]) == (3, 1)
    assert listed[0]["models"] == ["small-1"]


def test_ls_lists_the_others_where_one_is_damaged(recorded, harness):
    edit(LINES_0, "three lines", "two lines")
    done = harness("cassette", "ls")
    assert done.code == 1
    assert "3 cassettes, " in done.out
    assert f"1 cassette that cannot be used:\n  {LINES_0}:5: the line is damaged" in done.out
    data = harness("cassette", "ls", "--json").json
    assert (len(data["cassettes"]), len(data["damaged"])) == (3, 1)


def test_show_prints_each_conversation_with_what_it_took(recorded, harness):
    done = harness("cassette", "show", str(LINES_0))
    assert done.code == 0
    order = (
        "tiny · lines · repeat 0\n",
        "\n  plain: 2 model calls, 1 tool call, ",
        ", reward 0, ",
        "\n━━ 1 · plain, confirmed · ",
        " · 100 tokens in, 10 out · small-1\n",
        "── Settings of openai-chat\n    model: small-1\n",
        "── System\n    You work in /workspace.",
        f"── User\n    {LINES}\n",
        "── Call read_file\n    path: data.txt\n── Ran read_file (ok, ",
        "\n━━ 2 · plain, confirmed · ",
        "── Result of read_file\n    one\n    two\n",
        "── Answer\n    I see three lines.\n",
        "\n━━ 3 · confirmed · ",
        "── User\n    Is the task complete",
        "── Answer\n    COMPLETED: checked\n",
        "── Verdict of plain: reward 0\n",
    )
    places = [done.out.find(part) for part in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)
    tree = harness("cassette", "show", str(LINES_0), "--json").json["tree"]
    assert [len(entry["children"]) for entry in tree] == [1, 1, 0]


def test_where_variants_part_each_branch_has_a_margin(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    with model_server() as server:
        suite = make_suite(tmp_path / "suites/tiny", server.port) / "suite.toml"
        third = (
            '\n[[variants]]\nname = "asked"\nloop.confirm = {enabled = true, prompt = "Sure?"}\n'
        )
        suite.write_text(suite.read_text(encoding="utf-8") + third, encoding="utf-8")
        options = ("--task", "lines", "--repeats", "1", "--record-mode", "all")
        assert harness("run", "tiny", *options).code == 0
    done = harness("cassette", "show", str(LINES_0))
    assert done.out.count("· plain, confirmed, asked ·") == 2
    assert "\n│ ━━ 3 · confirmed · " in done.out
    assert "\n│ ── User\n│     Sure?\n│ ── Answer\n│     COMPLETED: checked\n" in done.out


def test_show_does_nothing_to_the_terminal(recorded, harness):
    edit(LINES_0, "I see three lines.", "I see \\u001b]0;title\\u0007\\u202ethree lines.")
    assert harness("cassette", "fix", str(LINES_0)).code == 0
    done = harness("cassette", "show", str(LINES_0))
    assert "I see ␛]0;title␇⟨U+202E⟩three lines." in done.out
    assert "\x1b" not in done.out


def test_long_texts_are_cut_on_a_terminal_alone(recorded, harness):
    long = "\\n".join(f"line {number}" for number in range(40))
    edit(LINES_0, "I see three lines.", long)
    assert harness("cassette", "fix", str(LINES_0)).code == 0
    arguments = ("cassette", "show", str(LINES_0))
    assert "line 39\n" in harness(*arguments).out
    for options, is_whole in (((), False), (("--full",), True)):
        shown = on_a_terminal(*arguments, *options)
        assert ("line 39" in shown) is is_whole
        assert ("more characters: --full" in shown) is not is_whole


def on_a_terminal(*arguments: str, answer: bytes = b"") -> str:
    """Run a command on a terminal of its own."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    process = subprocess.Popen(command_line(*arguments), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # the other end is closed
    process.wait()
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_show_shows_what_it_can_of_a_damaged_cassette(recorded, harness):
    edit(LINES_0, "COMPLETED: checked", "COMPLETED: really")
    lines = LINES_0.read_bytes().splitlines(keepends=True)
    LINES_0.write_bytes(b"".join([*lines[:-1], lines[-1][:30]]))
    done = harness("cassette", "show", str(LINES_0))
    assert done.code == 0
    assert "  line 8: the line is damaged: it is not what was sealed\n" in done.out
    assert f"  line {len(lines)}: the last line is cut\n" in done.out
    assert "COMPLETED: really" in done.out
    problems = harness("cassette", "show", str(LINES_0), "--json").json["problems"]
    assert [one["line"] for one in problems] == [8, len(lines)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "  line 1: "),
        (b'{"kind":"header","format":2}\n', "  line 1: format 2 is not known here; "),
        (
            b"\x1b]0;title\x07\xff\nmore\n",
            "  line 1: not a cassette, or its first line is damaged; ",
        ),
    ],
)
def test_show_shows_what_is_no_cassette_as_it_is(recorded, harness, content, said):
    LINES_0.write_bytes(content)
    done = harness("cassette", "show", str(LINES_0))
    first, rest = done.out.split("\n", 1)
    assert (done.code, done.err) == (0, "")
    assert first.startswith(said)
    shown = content.decode(errors="replace").replace("\x1b", "␛").replace("\x07", "␇")
    assert rest == (shown or "\n")
    done = harness("cassette", "show", str(LINES_0), "--json")
    assert (done.code, done.out) == (2, "")
    assert str(LINES_0) in done.err


COMMANDS = {
    "show": 0, "ls": 1, "audit": 1, "fix": 2, "prune": 2, "export": 2,
}  # fmt: skip


@pytest.mark.parametrize("depth", [300, 100_000])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_line_that_is_nested_deeply_is_a_damaged_one(recorded, harness, command, depth):
    with LINES_0.open("ab") as file:
        file.write(b"[" * depth + b"]" * depth + b"\n")
    more = {
        "export": ("--format", "vcr", "-o", "out.yaml"),
        "prune": ("--dry-run",),
    }
    done = harness("cassette", command, str(LINES_0), *more.get(command, ()))
    assert done.code == COMMANDS[command]
    number = len(LINES_0.read_bytes().splitlines())
    assert re.search(f"(line |:){number}\\b", done.out + done.err)
    assert "defect" not in done.err


def test_the_healthy_ones_beside_a_deeply_nested_one_are_told_of(recorded, harness):
    LINES_0.write_bytes(b"[" * 100_000)
    assert "\n3 cassettes, " in harness("cassette", "ls").out
    assert "\n4 cassettes, 1 finding: 1 damaged\n" in harness("cassette", "audit").out


def test_diff_tells_in_words_what_differs(recorded, harness):
    other = Path("other/tiny")
    shutil.copytree("cassettes/tiny", other)
    assert harness("cassette", "diff", "cassettes/tiny", str(other)).code == 0
    edit(other / "lines/0.jsonl", "COMPLETED: checked", "COMPLETED: really")
    (other / "fruit/1.jsonl").unlink()
    done = harness("cassette", "diff", "cassettes/tiny", str(other))
    assert done.code == 1
    assert done.out.startswith("cassettes/tiny/fruit/1.jsonl: removed\n")
    assert "@@ confirmed: call 3, answer changed (line -8 +8)\n" in done.out
    assert "-COMPLETED: checked\n+COMPLETED: really\n" in done.out
    assert done.out.endswith("1 cassette removed, 1 call changed\n")
    data = harness("cassette", "diff", "cassettes/tiny", str(other), "--json").json
    assert data["same"] is False
    assert [len(one["differences"]) for one in data["files"]] == [0, 0, 1, 0]


def test_audit_finds_nothing_where_nothing_is_wrong(recorded, harness):
    for arguments in ((), ("cassettes/tiny",), (str(LINES_0),), ("--suite", "tiny")):
        done = harness("cassette", "audit", *arguments)
        assert (done.code, done.err) == (0, "")
        assert done.out.endswith(": healthy\n")
    data = harness("cassette", "audit", "--suite", "tiny", "--json").json
    assert data == {"files": 4, "healthy": True, "findings": []}


def test_audit_finds_every_kind(recorded, harness, monkeypatch):
    secret = "quite-secret-value-17"
    monkeypatch.setenv("SOME_API_KEY", secret)
    edit(LINES_0, "I see three lines.", f"I see {secret}.")
    harness("cassette", "fix", str(LINES_0))
    edit(Path("cassettes/tiny/lines/1.jsonl"), "COMPLETED: checked", "COMPLETED: no")
    shutil.copytree("cassettes/tiny/fruit", "cassettes/tiny/gone")
    shutil.copy(LINES_0, "cassettes/tiny/fruit/2.jsonl.partial")
    shutil.copy(LINES_0, "cassettes/tiny/fruit/0.jsonl.new")
    edit(Path("suites/tiny/fruit/instruction.md"), "apple", "pear")
    done = harness("cassette", "audit", "--suite", "tiny")
    assert done.code == 1
    found = [line.split()[:2] for line in done.out.splitlines()]
    assert ["leaking", f"{LINES_0}:5"] in found
    assert ["damaged", "cassettes/tiny/lines/1.jsonl:8"] in found
    assert ["orphaned", "cassettes/tiny/gone/0.jsonl"] in found
    assert ["unfinished", "cassettes/tiny/fruit/2.jsonl.partial"] in found
    assert ["unfinished", "cassettes/tiny/fruit/0.jsonl.new"] in found
    assert any(
        kind == "stale" and place.startswith("cassettes/tiny/fruit/0") for kind, place in found
    )
    assert "SOME_API_KEY" in done.out
    assert secret not in done.out
    assert "damaged: after an edit by hand `harness cassette fix FILE`" in done.out
    data = harness("cassette", "audit", "--suite", "tiny", "--json").json
    assert {one["kind"] for one in data["findings"]} == {
        "leaking",
        "damaged",
        "orphaned",
        "unfinished",
        "stale",
    }


def test_an_edited_recording_replays_after_fix(recorded, harness):
    edit(LINES_0, "I see three lines.", "I see 2 lines.")
    assert harness("run", "tiny", "--task", "lines").code == 2
    done = harness("cassette", "fix", str(LINES_0), "--dry-run")
    assert done.code == 0
    assert done.out.endswith("not written\n")
    assert harness("run", "tiny", "--task", "lines").code == 2
    done = harness("cassette", "fix", str(LINES_0))
    assert done.code == 0
    assert f"{LINES_0}:5: interaction: edited, sealed again\n" in done.out
    assert "the verdicts of plain, confirmed were given before this edit" in done.out
    assert harness("cassette", "audit", "--suite", "tiny").code == 0
    ran = harness("run", "tiny", "--task", "lines", "--out", "reports/edited")
    assert ran.code == 0
    assert "I see 2 lines." in harness("show", "reports/edited", "lines/plain/0").out
    assert harness("cassette", "fix", str(LINES_0)).out == f"{LINES_0}: nothing to repair\n"


def test_fix_refuses_what_it_cannot_read(recorded, harness):
    before = LINES_0.read_bytes().replace(b'"kind":"tool"', b'"kind":"tool', 1)
    LINES_0.write_bytes(before)
    done = harness("cassette", "fix", str(LINES_0))
    assert (done.code, done.out) == (2, "")
    assert f"error: {LINES_0}:4: the line is damaged: not JSON" in done.err
    assert LINES_0.read_bytes() == before


def test_prune_removes_what_is_gone_and_the_rest_replays(recorded, harness):
    without_variant("confirmed")
    before = files()
    for arguments in (("--dry-run",), ()):
        done = harness("cassette", "prune", "--suite", "tiny", *arguments)
        assert done.code == (0 if arguments else 2)
        assert files() == before
    assert "give --yes to remove it" in done.err
    done = harness("cassette", "prune", "--suite", "tiny", "--yes")
    assert done.code == 0
    assert f"{LINES_0}:8-10: variant 'confirmed' is not in the suite\n" in done.out
    assert "lines, " in done.out
    assert harness("cassette", "audit", "--suite", "tiny").out == "4 cassettes: healthy\n"
    assert harness("run", "tiny").code == 0
    done = harness("cassette", "prune", "--suite", "tiny", "--yes", "--json")
    assert done.json == {"removed": True, "files": []}


def test_prune_asks_on_a_terminal(recorded, harness):
    without_variant("confirmed")
    before = files()
    shown = on_a_terminal("cassette", "prune", "--suite", "tiny", answer=b"n\n")
    assert f"{LINES_0}:8-10: variant 'confirmed' is not in the suite\n" in shown
    assert "Remove it? [y/N]" in shown
    assert files() == before
    on_a_terminal("cassette", "prune", "--suite", "tiny", answer=b"y\n")
    assert files() != before
    assert harness("cassette", "audit", "--suite", "tiny").code == 0


def test_prune_removes_cassettes_of_tasks_that_are_gone(recorded, harness):
    shutil.rmtree("suites/tiny/fruit")
    done = harness("cassette", "prune", "--suite", "tiny", "--yes")
    assert done.code == 0
    assert "2 files, " in done.out
    assert sorted(path.parent.name for path in Path("cassettes").rglob("*.jsonl")) == ["lines"] * 2


@pytest.mark.slow
def test_git_shows_conversations_in_a_diff(recorded, harness):
    """The settings that docs/cassettes.md names, in real git."""
    driver = Path("bin/harness")
    driver.parent.mkdir()
    driver.write_text(
        f"#!{sys.executable}\nfrom harness.cli import main\nmain()\n", encoding="utf-8"
    )
    driver.chmod(0o755)
    Path(".gitattributes").write_text("cassettes/**/*.jsonl diff=cassette\n", encoding="utf-8")
    git("init", "-q")
    git("config", "diff.cassette.textconv", f"{driver.absolute()} cassette show")
    git("add", ".gitattributes", "cassettes")
    git("commit", "-qm", "recorded")
    edit(LINES_0, "COMPLETED: checked", "COMPLETED: really")
    edited = [
        "+  line 8: the line is damaged: it is not what was sealed",
        "-    COMPLETED: checked",
        "+    COMPLETED: really",
    ]
    assert changed() == edited
    # What is no cassette is in nobody's way.
    for name, content in (("empty", b""), ("newer", b'{"kind":"header","format":2}\n')):
        Path(f"cassettes/{name}.jsonl").write_bytes(content)
    git("add", "-N", "cassettes")
    assert set(edited) < set(changed())
    git("add", "cassettes")
    git("commit", "-qm", "strange")
    assert "+    COMPLETED: really" in git("log", "-p")
    Path("cassettes/newer.jsonl").write_bytes(b'{"kind":"header","format":2,"new":1}\n')
    assert changed() == [
        '-{"kind":"header","format":2}', '+{"kind":"header","format":2,"new":1}',
    ]  # fmt: skip


def changed() -> list[str]:
    lines = git("diff").splitlines()
    return [line for line in lines if line[:1] in "+-" and line[:4] not in ("--- ", "+++ ")]


def git(*arguments: str) -> str:
    nobody = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{role}_{part}": "x"
            for role in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        },
    }
    environment = os.environ | nobody | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


@pytest.mark.parametrize("command", [["ls"], ["prune", "--dry-run"], ["audit"]])
def test_a_folder_without_a_cassette_is_told_to_be_one(recorded, harness, command):
    done = harness("cassette", *command, "suites/tiny")
    assert (done.code, done.out) == (0, "suites/tiny holds no cassette.\n")
