from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import BadInputError
from harness.loader.dockerfile.build import Build, files_of, read_build
from harness.loader.dockerfile.instructions import instructions, json_form, words
from harness.schema.environment import CopyFiles, FileCommand
from tests.loader.suite_folders import write

FROM = "FROM python:3.12-slim\n"


def made(folder: Path, text: str) -> Build:
    return read_build(write(folder / "Dockerfile", text), folder, "environment/Dockerfile")


def commands(build: Build) -> list[tuple[str, str]]:
    return [(step.cwd, step.command) for step in build.steps if isinstance(step, FileCommand)]


def copies(build: Build) -> list[tuple[tuple[str, ...], str]]:
    return [(step.sources, step.target) for step in build.steps if isinstance(step, CopyFiles)]


def test_a_usual_dockerfile(tmp_path: Path):
    write(tmp_path / "data.csv", "1")
    write(tmp_path / "skills" / "a" / "SKILL.md", "")
    text = """
# what a task begins with
FROM python:3.12-slim

ENV DEBIAN_FRONTEND=noninteractive \\
    PYTHONUNBUFFERED="1"
RUN apt-get update && apt-get install -y --no-install-recommends \\
    curl \\
    # for the tests
    git \\
    && rm -rf /var/lib/apt/lists/*
WORKDIR /root
RUN pip3 install --no-cache-dir --break-system-packages \\
    numpy==1.26.4 'pandas>=2,<3' "openpyxl[extra]"
RUN mkdir -p /root/output && chmod 777 /root/output
COPY data.csv /root/data.csv
COPY skills /root/.claude/skills
CMD ["bash"]
"""
    build = made(tmp_path, text)
    assert (build.base, build.python, build.workdir) == ("python:3.12-slim", "3.12", "/root")
    assert build.env == {"DEBIAN_FRONTEND": "noninteractive", "PYTHONUNBUFFERED": "1"}
    assert build.packages == ("numpy==1.26.4", "pandas>=2,<3", "openpyxl[extra]")
    assert copies(build) == [
        (("data.csv",), "/root/data.csv"),
        (("skills",), "/root/.claude/skills"),
    ]
    made_folder = "set -e\nmkdir -p /root/output\nchmod 777 /root/output"
    assert commands(build) == [("/root", made_folder)]
    assert build.ignored == [
        "environment/Dockerfile:7: apt-get update",
        "environment/Dockerfile:7: apt-get install -y --no-install-recommends curl git",
        'environment/Dockerfile:18: CMD ["bash"]',
    ]
    assert build.needs == []


def test_instructions_have_their_lines_and_comments_do_not_count():
    text = "# escape=`\nfrom a\n\n  run b `\n  # c\n\n  && d \\ `\n e\n"
    found = instructions(text)
    assert [(one.name, one.line) for one in found] == [("FROM", 2), ("RUN", 4)]
    run = found[1]
    assert run.value.split() == ["b", "&&", "d", "\\", "e"]
    assert [run.line_at(run.value.index(word)) for word in ("b", "d", "e")] == [4, 7, 8]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a "b c" d\\ e', ["a", '"b c"', "d\\ e"]),
        ("A='x y' B=z", ["A='x y'", "B=z"]),
        ("", []),
        ('"open', ['"open']),
    ],
)
def test_words_end_at_spaces_outside_of_quotes(text: str, expected: list[str]):
    assert words(text) == expected


def test_a_list_in_json_is_the_other_way_to_write_arguments():
    assert json_form('["a b", "c"]') == ["a b", "c"]
    for other in ("a b", "[a]", "[1]", '["a"', "[" * 10_000):
        assert json_form(other) is None


def test_variables_stand_for_what_was_set_before(tmp_path: Path):
    text = (
        "ARG V=3.11\nFROM python:${V}-slim\nARG V\nARG W=${V}x\nENV A=$W B=${C:-d} A2=$A\n"
        "ENV OLD the value\nENV PATH=/opt/x:$PATH\nWORKDIR /a\nWORKDIR $W\n"
    )
    build = made(tmp_path, text)
    assert (build.base, build.workdir) == ("python:3.11-slim", "/a/3.11x")
    assert build.env["A"] == "3.11x"
    assert (build.env["B"], build.env["A2"], build.env["OLD"]) == ("d", "", "the value")
    assert build.env["PATH"].startswith("/opt/x:/usr/local/")


def test_the_last_stage_counts_and_what_it_begins_from(tmp_path: Path):
    text = (
        "FROM golang:1.22 AS tools\nRUN go build\n"
        "FROM ubuntu:24.04 AS base\nWORKDIR /srv\nENV A=1\n"
        "FROM base\nENV B=2\nCOPY --from=tools /x /bin/x\n"
    )
    build = made(tmp_path, text)
    assert (build.base, build.workdir, build.env) == ("ubuntu:24.04", "/srv", {"A": "1", "B": "2"})
    assert build.ignored == ["environment/Dockerfile:8: COPY --from=tools /x /bin/x"]
    assert build.needs == []


@pytest.mark.parametrize(
    ("line", "sources", "target"),
    [
        ("COPY a.txt /x", ("a.txt",), "/x"),
        ("COPY a.txt /x/", ("a.txt",), "/x/"),
        ("COPY a.txt .", ("a.txt",), "/srv/"),
        ("COPY a.txt ./in/b.txt", ("a.txt",), "/srv/in/b.txt"),
        ("COPY ./d /x", ("d",), "/x"),
        ("COPY /d/ /x", ("d",), "/x"),
        ("COPY . .", (".",), "/srv/"),
        ("COPY a.txt d/b.txt /x", ("a.txt", "d/b.txt"), "/x/"),
        ('COPY ["a.txt", "/my x/"]', ("a.txt",), "/my x/"),
        ("COPY --chown=1:1 --link *.txt /x/", ("*.txt",), "/x/"),
        ("COPY $F ${T}/", ("a.txt",), "/from/arg/"),
        ("ADD a.txt /x", ("a.txt",), "/x"),
    ],
)
def test_copies_have_sources_and_an_absolute_target(
    tmp_path: Path, line: str, sources: tuple[str, ...], target: str
):
    write(tmp_path / "a.txt", "")
    write(tmp_path / "d" / "b.txt", "")
    build = made(tmp_path, f"{FROM}WORKDIR /srv\nARG F=a.txt T=/from/arg\n{line}\n")
    assert copies(build) == [(sources, target)]
    assert (build.ignored, build.needs) == ([], [])


@pytest.mark.parametrize("source", ["*.gone", "[z-a]", "big.bin"])
def test_a_pattern_of_nothing_makes_a_task_impossible(tmp_path: Path, source: str):
    write(tmp_path / "environment" / ".dockerignore", "*.bin\n")
    build = made(tmp_path / "environment", f"{FROM}COPY {source} /x\n")
    assert build.needs == [f"environment/Dockerfile:2: {source!r} is not in environment/"]
    assert build.steps == []


@pytest.mark.parametrize("source", ["gone.txt", "../a.txt", "link/passwd"])
def test_what_is_not_in_the_context_is_an_error(tmp_path: Path, source: str):
    write(tmp_path / "a.txt", "")
    context = tmp_path / "environment"
    context.mkdir()
    (context / "link").symlink_to("/etc")
    expected = f"{context}/Dockerfile:2: COPY: {source!r} is not in environment/; add it"
    with pytest.raises(BadInputError, match=re.escape(expected)):
        made(context, f"{FROM}COPY {source} /x\n")


def test_modes_archives_and_files_within_the_dockerfile_become_commands(tmp_path: Path):
    write(tmp_path / "run.sh", "")
    write(tmp_path / "all.tar.gz", "")
    text = (
        f"{FROM}COPY --chmod=755 run.sh /bin2/\nADD all.tar.gz /data\n"
        "COPY <<EOF /etc2/conf\na = $HOME; 'b'\nEOF\nENV A=1\n"
    )
    build = made(tmp_path, text)
    assert commands(build) == [
        ("/", "chmod -R 755 /bin2/run.sh"),
        ("/", "tar -xf /data/all.tar.gz -C /data/ && rm /data/all.tar.gz"),
        ("/", "mkdir -p /etc2\nprintf %s 'a = $HOME; '\"'\"'b'\"'\"'\n' > /etc2/conf"),
    ]
    assert build.env == {"A": "1"}


@pytest.mark.parametrize(
    ("line", "packages"),
    [
        ("pip install a b==1.0", ("a", "b==1.0")),
        ("pip install --no-cache-dir --upgrade -q a", ("a",)),
        ("python3 -m pip install a", ("a",)),
        ("/opt/venv/bin/pip install a", ("a",)),
        ("PIP_X=1 sudo -E pip3.12 install a", ("a",)),
        ("uv pip install --system -p 3.12 a", ("a",)),
        ("uv add a && uv tool install b", ("a", "b")),
        ("pip install --upgrade pip && pip install a", ("a",)),
        ("pip install a || pip install --user b", ("a",)),
        ("pip install a==1 b && pip install a==2 b", ("b", "a==2")),
        ("pip install 'a[x]==1' && pip install a", ("a[x]==1",)),
        ("pip install a==1 && pip install 'a[x]'", ("a==1", "a[x]")),
        (
            "pip install t==1 -i https://i.example/cpu",
            ("t==1", "--extra-index-url", "https://i.example/cpu"),
        ),
        ("pip install --pre --only-binary :all: a", ("--pre", "--only-binary", ":all:", "a")),
        ("V=2 && pip install a==$V b==${W}", ("a==2", "b==3")),
        ("P='a b' && pip install $P", ("a", "b")),
        ("pip install git+https://x.example/y.git", ("git+https://x.example/y.git",)),
        ("for p in 1; do pip install a; done", ("a",)),
    ],
)
def test_packages_are_what_pip_is_told(tmp_path: Path, line: str, packages: tuple[str, ...]):
    build = made(tmp_path, f"{FROM}ARG W=3\nRUN {line}\n")
    assert build.packages == packages
    assert (build.ignored, build.steps) == ([], [])


def test_files_of_requirements_are_read_where_they_were_copied_to(tmp_path: Path):
    write(
        tmp_path / "requirements.txt",
        "# top\na==1 # one\n\nb \\\n  --hash=sha256:00\n-r more.txt\n",
    )
    write(tmp_path / "deep" / "more.txt", "--pre\nc; python_version < '4'\n-e .\n")
    text = (
        f"{FROM}WORKDIR /app\nCOPY requirements.txt /app/\nCOPY deep/ .\n"
        "RUN pip install -r requirements.txt\nRUN pip install -r /gone.txt\n"
    )
    build = made(tmp_path, text)
    assert build.packages == ("a==1", "b", "--pre", "c; python_version < '4'")
    assert build.ignored == [
        "environment/Dockerfile:5: pip: --editable .",
        "environment/Dockerfile:6: pip: -r /gone.txt: not among the task's files",
    ]


def test_files_of_the_context_are_found_by_their_place_on_the_machine(tmp_path: Path):
    write(tmp_path / "d" / "x.txt", "")
    write(tmp_path / "y.txt", "")
    write(tmp_path / "Dockerfile", f"{FROM}COPY d /data\nCOPY y.txt /data/\nCOPY d/x.txt /z\n")
    file = files_of(made(tmp_path, (tmp_path / "Dockerfile").read_text()).steps, tmp_path)
    assert file("/data/x.txt") == tmp_path / "d" / "x.txt"
    assert file("/data/y.txt") == tmp_path / "y.txt"
    assert file("/z") == tmp_path / "d" / "x.txt"
    assert file("/data/../Dockerfile") is None
    assert file("/data/gone") is None


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("mkdir -p a/b", "mkdir -p a/b"),
        ("cp -r /x/. . && mv a b; ln -s a c", "set -e\ncp -r /x/. .\nmv a b\nln -s a c"),
        ("echo 'a b' > f", "echo 'a b' > f"),
        ("cat f | sed s/a/b/ >> g || true", "cat f | sed s/a/b/ >> g || true"),
        ("for f in *.zip; do unzip $f; done", "for f in *.zip; do unzip $f; done"),
        ("test -d x || mkdir x", "test -d x || mkdir x"),
        ("tar xf $V.tar", "V=1.2\ntar xf $V.tar"),
        ("N=x && touch $N", "N=x\ntouch $N"),
        ("echo 'a\\n\\\nb' > f", "echo 'a\\nb' > f"),
        ("<<EOF\nset -e\nmkdir a\nEOF", "mkdir a"),
        ('["mkdir", "a b"]', "mkdir 'a b'"),
        ("--mount=type=cache,target=/c touch a", "touch a"),
    ],
)
def test_commands_that_only_touch_files_are_kept(tmp_path: Path, line: str, command: str):
    build = made(tmp_path, f"{FROM}WORKDIR /w\nARG V=1.2\nRUN {line}\n")
    assert commands(build) == [("/w", command)]
    assert build.ignored == []


@pytest.mark.parametrize(
    "line", ["python3 -u make.py --all > log", "bash /w/make.sh", "./make.sh", "A=1 sh make.sh"]
)
def test_scripts_of_the_context_are_run_and_may_fail(tmp_path: Path, line: str):
    for name in ("make.py", "make.sh"):
        write(tmp_path / name, "")
    build = made(tmp_path, f"{FROM}WORKDIR /w\nCOPY make.* ./\nRUN touch a && {line} && touch b\n")
    steps = [step for step in build.steps if isinstance(step, FileCommand)]
    assert [(step.command, step.needed) for step in steps] == [
        ("touch a", True),
        (f"set -e\n{line}\ntouch b", False),
    ]
    assert build.ignored == []


@pytest.mark.parametrize(
    "line", ["git init -q", "git -C /w -c user.name=a commit -m 'a b'", "git config --global a b"]
)
def test_git_is_tried_on_files_of_the_machine(tmp_path: Path, line: str):
    build = made(tmp_path, f"{FROM}WORKDIR /w\nRUN mkdir a && {line}\n")
    steps = [step for step in build.steps if isinstance(step, FileCommand)]
    assert [(step.command, step.needed) for step in steps] == [("mkdir a", True), (line, False)]
    assert build.ignored == []


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("python3 -m venv --clear /a/venv", "/a/venv"),
        ("uv venv --python 3.12 env", "/w/env"),
        ("uv venv", "/w/.venv"),
        ("virtualenv $V/it -p python3", "/v/it"),
        ("python3.12 -m venv $V/it", "/v/it"),
    ],
)
def test_an_environment_of_the_tasks_is_the_one_that_is_prepared(
    tmp_path: Path, line: str, place: str
):
    folder = place.rpartition("/")[0]
    build = made(tmp_path, f"{FROM}WORKDIR /w\nENV V=/v\nRUN {line} && {place}/bin/pip install a\n")
    linked = f"set -e\nmkdir -p {folder}\nln -sfn /opt/venv {place}"
    assert (build.packages, commands(build)) == (("a",), [("/w", linked)])
    assert build.ignored == []


def test_the_python_of_an_environment_is_that_of_its_packages(tmp_path: Path):
    text = "RUN apt-get install python3.9 && A=1 python3.9 -m venv /v\nRUN /v/bin/pip install a\n"
    assert made(tmp_path, FROM + text).python == "3.9"
    assert made(tmp_path, f"{FROM}RUN python3.9 x.py && pip install a\n").python == "3.12"


def test_an_environment_at_the_place_of_the_prepared_one_is_that(tmp_path: Path):
    build = made(
        tmp_path, f"{FROM}RUN python3 -m venv /opt/venv\nRUN /opt/venv/bin/pip install a\n"
    )
    assert (build.packages, commands(build), build.ignored) == (("a",), [], [])


@pytest.mark.parametrize(
    "line",
    [
        *("python3 gone.py", "python3 -m make", "python3 -c 1", "./data", "python3 -m venv"),
        *("git", "git clone https://x.example/y", "git push", "git --version"),
    ],
)
def test_other_programs_are_not_run(tmp_path: Path, line: str):
    write(tmp_path / "data", "")
    build = made(tmp_path, f"{FROM}COPY data ./\nRUN {line}\n")
    assert build.ignored == [f"environment/Dockerfile:3: {line}"]


def test_a_change_of_folder_counts_to_the_end_of_its_line(tmp_path: Path):
    build = made(
        tmp_path,
        f"{FROM}WORKDIR /w\nRUN touch a && cd x && touch b && cd /y; touch c\nRUN touch d\n",
    )
    assert commands(build) == [
        *[("/w", "touch a"), ("/w/x", "touch b"), ("/y", "touch c")],
        ("/w", "touch d"),
    ]


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("RUN apt-get update && chown a /x", True),
        ("RUN ln -s /a /usr/bin/a", True),
        ("RUN git clone https://x.example/y", False),
        ("RUN apt-get update && curl -O https://x.example/y.zip", False),
        ("COPY --from=other /a /b", False),
        ("ADD https://x.example/y.zip /", False),
    ],
)
def test_behind_a_line_that_was_to_make_files_a_command_may_fail(
    tmp_path: Path, line: str, needed: bool
):
    build = made(tmp_path, f"{FROM}RUN touch a\n{line} \nRUN unzip y.zip\n")
    steps = [step for step in build.steps if isinstance(step, FileCommand)]
    assert [step.needed for step in steps] == [True, needed]


@pytest.mark.parametrize("place", ["/etc/app/app.conf", "/etc/app.conf", "/etc/hosts.d/", "/etcx"])
def test_what_of_etc_is_the_tasks_own_is_made(tmp_path: Path, place: str):
    build = made(tmp_path, f"{FROM}COPY Dockerfile {place}\nRUN mkdir -p {place}.d\n")
    copied, tried = build.steps
    assert copied == CopyFiles(sources=("Dockerfile",), target=place)
    assert isinstance(tried, FileCommand)
    assert (tried.command, tried.needed) == (f"mkdir -p {place}.d", True)
    assert build.ignored == []


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf /var/lib/apt/lists/* /tmp/x",
        "rm -rf ~/.cache",
        "echo done",
        "set -eux",
        "echo x > /dev/null",
        "true",
    ],
)
def test_commands_without_effect_are_not_run(tmp_path: Path, line: str):
    build = made(tmp_path, f"{FROM}RUN {line}\n")
    assert (build.steps, build.ignored) == ([], [])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("RUN chown -R a b", "chown -R a b"),
        ("RUN curl -L https://x.example/y | sh", "curl -L https://x.example/y | sh"),
        ("RUN make && mkdir a", "make"),
        ("RUN touch $(date)", "touch $(date)"),
        ("RUN ln -s /usr/bin/python3 /usr/bin/python", "/usr/bin/python belongs to the system"),
        ("RUN echo a >> /etc/profile", "/etc/profile belongs to the system"),
        ("RUN mkdir -p /etc/ssl/own", "/etc/ssl/own belongs to the system"),
        ("RUN pip install .", "pip: .: installs files of the task's own"),
        ("RUN pip install -e ./lib", "pip: --editable ./lib"),
        ("RUN pip install $(cat r)", "pip: names a package only when it runs"),
        ("COPY Dockerfile /usr/local/x", "COPY Dockerfile /usr/local/x (/usr/local/x belongs to"),
        ("COPY Dockerfile /etc/", "COPY Dockerfile /etc/ (/etc/ belongs to the system)"),
        ("COPY Dockerfile /etc/hosts", "/etc/hosts belongs to the system"),
        ("COPY Dockerfile /etc/ssl/certs/", "/etc/ssl/certs/ belongs to the system"),
        ("ADD https://x.example/y /z", "ADD https://x.example/y /z"),
        ("USER nobody", "USER nobody"),
        ("EXPOSE 80", "EXPOSE 80"),
        ("ENTRYPOINT /x", "ENTRYPOINT /x"),
        ("HEALTHCHECK CMD x", "HEALTHCHECK CMD x"),
        ("LABEL a=b", "LABEL a=b"),
    ],
)
def test_all_else_is_listed_with_its_line(tmp_path: Path, line: str, told: str):
    build = made(tmp_path, f"{FROM}\n{line}\n")
    assert len(build.ignored) == 1
    assert build.ignored[0].startswith("environment/Dockerfile:3: ")
    assert told in build.ignored[0]


@pytest.mark.parametrize(
    ("image", "fits", "python"),
    [
        ("python:3.12-slim", True, "3.12"),
        ("docker.io/library/python:3.11", True, "3.11"),
        ("python", True, None),
        ("ubuntu:24.04@sha256:00", True, "3.12"),
        ("debian:bookworm-slim", True, "3.11"),
        ("ubuntu:devel", True, None),
        ("debian", True, None),
        ("ghcr.io/astral-sh/uv:python3.12-bookworm-slim", True, "3.12"),
        ("ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624", True, None),
        ("ghcr.io/laude-institute/t-bench/python-3-13:20250620", True, "3.13"),
        ("nvidia/cuda:12.4.0-base-ubuntu22.04", False, None),
        ("node:20", False, None),
        ("registry.example:5000/team/solver", False, None),
    ],
)
def test_images_that_hold_more_than_a_plain_system_make_a_task_impossible(
    tmp_path: Path, image: str, fits: bool, python: str | None
):
    build = made(tmp_path, f"FROM --platform=linux/amd64 {image}\n")
    assert build.python == python
    assert bool(build.needs) != fits
    assert fits or image in build.needs[0]


def test_dockerignore_leaves_out_files_and_whole_folders(tmp_path: Path):
    for name in ("a.log", "keep.log", "d/x.py", "d/y.log", "node/m/x", "out/a", "out/b", "z/[1]"):
        write(tmp_path / name, "")
    rules = "# c\n\n*.log\n**/*.py\n!keep.log\n/node\nout/*\n!out/b\nz/[[]1]\n[z-a]\n"
    write(tmp_path / ".dockerignore", rules)
    build = made(tmp_path, f"{FROM}COPY . /all\nCOPY out /out\nCOPY keep.log /k\n")
    left_out = [step.exclude for step in build.steps if isinstance(step, CopyFiles)]
    assert left_out[0] == ("a.log", "d/x.py", "node/m/x", "out/a", "z/[1]")
    assert left_out[1:] == [("out/a",), ()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RUN a\n", "Dockerfile: has no FROM; begin with the image"),
        (f"{FROM}\nCOPPY a b\n", "Dockerfile:3: unknown instruction 'COPPY'; did you mean 'COPY'"),
        ("RUM a\n", "Dockerfile:1: unknown instruction 'RUM'; did you mean 'RUN'"),
    ],
)
def test_what_no_builder_accepts_is_an_error(tmp_path: Path, text: str, said: str):
    with pytest.raises(BadInputError, match=re.escape(said)):
        made(tmp_path, text)


@pytest.mark.parametrize(
    ("before", "needs"),
    [
        ("", ["environment/Dockerfile:2: 'req.txt' is neither in environment/ nor made"]),
        ("echo a > req.txt && ", []),
        ("git clone https://x.example/y . && ", []),
    ],
)
def test_requirements_that_are_nowhere_make_a_task_impossible(
    tmp_path: Path, before: str, needs: list[str]
):
    folder = tmp_path / "environment"
    assert made(folder, f"{FROM}RUN {before}pip install -r req.txt\n").needs == needs


def test_text_within_a_run_is_no_instruction(tmp_path: Path):
    assert made(tmp_path, f"{FROM}RUN cat <<'A-B' > /x\nfour lines\nA-B\n").needs == []


LINES = st.sampled_from(
    [
        *(
            "FROM a",
            "FROM a AS b",
            "FROM",
            "ARG",
            "ARG A=",
            "ENV",
            "ENV =",
            "ENV A",
            "COPY",
            "COPY a",
        ),
        *(
            "COPY <<A <<B /x",
            "A",
            "B",
            "RUN",
            "RUN <<A",
            "RUN [",
            "WORKDIR",
            "ADD [] []",
            "\\",
            "#",
        ),
        *(
            "RUN pip install",
            "RUN pip install -r",
            "RUN cd && cd - && touch",
            "RUN mv",
            "COPY --x= y z",
        ),
    ]
)
ANY_LINE = st.one_of(LINES, st.text(alphabet="RUNCOPYENV <>[]{}\"'$\\=-/.*\t#&|;`", max_size=20))


@given(st.lists(ANY_LINE, max_size=8))
@example(["FROM a", "COPY [[] /x"])
@example(["FROM a", "COPY **x /x"])
def test_any_text_is_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
):
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    # An error is the author's to mend; anything else would be ours.
    with suppress(BadInputError):
        assert made(folder, "\n".join(lines)).workdir.startswith("/")
