"""What a test script finds in place of the programs that install things."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.schema.environment import Equipment
from harness.values import Mount, ProcessResult
from tests.sandbox.packing import Workshop, wheel, working_sandbox, workshop

Bash = Callable[..., ProcessResult]

PREPARED = Equipment(
    packages=("greeter[loud]==1.0", "checker==8.4.1"),
    tools=(("checker", "checker==8.4.1", "plugin==0.3.5"), ("greeter==1.0",)),
    stand_ins=True,
)


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    shop: Workshop = workshop(tmp_path_factory.mktemp("stand-ins"), working_sandbox())
    wheel(
        shop.index,
        "greeter",
        requires=["voice; extra == 'loud'", "absent; extra == 'silent'"],
        extras=["loud", "silent"],
        scripts={"greet": "greeter:main"},
    )
    wheel(shop.index, "voice", "0.5")
    wheel(
        shop.index, "checker", "8.4.1", scripts={"checker": "checker:main", "chk": "checker:main"}
    )
    wheel(shop.index, "plugin", "0.3.5")
    equipped = shop.equip_with(PREPARED)

    def run(script: str, *mounts: Mount) -> ProcessResult:
        return shop.bash(equipped, f"cd /tmp; {script}", *mounts)

    return run


def test_a_project_of_uv_has_its_environment_in_its_folder(bash: Bash):
    project = "mkdir p && cd p && uv init && uv add checker && uv add checker==8.4.1"
    done = bash(f"{project} && .venv/bin/python -m checker a && . .venv/bin/activate && checker a")
    assert done.exit_code == 0, done.output


def test_scripts_may_ask_for_versions(bash: Bash):
    done = bash("uv --version && uvx --version && uvx -V")
    assert (done.exit_code, done.output.count("0.9.7")) == (0, 3)


@pytest.mark.parametrize(
    "command",
    [
        "uvx -p 3.13 -w checker==8.4.1 -w plugin==0.3.5 checker a",
        "uvx --python 3.12 --with=plugin==0.3.5 --with checker==8.4.1 checker a",
        "uvx -q -wplugin==0.3.5 --with 'checker==8.4.1' --index https://x.example checker a",
        "uvx --with checker==8.4.1,plugin==0.3.5 --from checker -- chk a",
        "uvx --from=checker@8.4.1 --with checker -w plugin==0.3.5 checker a",
        "uv --quiet tool run --with checker==8.4.1 -w plugin==0.3.5 checker a",
        "uv run -w plugin==0.3.5 --with checker==8.4.1 --with checker checker a",
        "uv run --with plugin -m checker a",
        "printf 'plugin>=0.3,<1 # it\\n' > r; uv run --with-requirements r -m checker a",
        "uv run --no-project checker a",
        "uv run -- python3 -m checker a",
        "uvx -p 3.13 --with checker==8.4.1 --with plugin python -m checker a",
        "uvx --with checker,plugin python3.12 -c 'import checker; checker.main()' a",
        "echo 'import checker; checker.main()' > it; uvx python it a",
    ],
)
def test_a_tool_is_run_from_the_environment_that_has_what_it_needs(bash: Bash, command: str):
    done = bash(command)
    assert done.output == "checker 8.4.1 a\n"
    assert done.exit_code == 0


def test_a_tool_sees_the_packages_of_its_own_environment_alone(bash: Bash):
    script = "uv run --with checker,checker==8.4.1,plugin==0.3.5 python3 -c 'import plugin, sys\n"
    done = bash(script + "print(sys.prefix)\nimport greeter'")
    assert "/opt/uvx/" in done.output
    assert "No module named 'greeter'" in done.output


def test_a_script_is_run_with_what_it_asks_for(bash: Bash):
    script = "echo 'import plugin, sys; print(sys.argv)' > it.py; uv run --with plugin it.py b"
    assert bash(script).output == "['it.py', 'b']\n"


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (
            "uvx elsewhere",
            1,
            "uvx (stand-in): there is no network, and this was not prepared: else",
        ),
        ("uvx --with checker==9 checker", 1, "this was not prepared: checker==9 checker"),
        ("uvx --from greeter==1.0 shout", 1, "uvx (stand-in): greeter==1.0 has no program shout"),
        ("uvx", 2, "name a tool to run"),
        ("uv run", 2, "name a command to run"),
        ("uv sync", 1, "this was not prepared: uv sync"),
        ("uv tool install elsewhere", 1, "No matching distribution found for elsewhere"),
        ("uv tool upgrade checker", 1, "this was not prepared: uv tool upgrade checker"),
        ("pipx run checker", 1, "this was not prepared: pipx run checker"),
        ("uv add elsewhere", 1, "No matching distribution found for elsewhere"),
    ],
)
def test_what_was_not_prepared_fails_and_is_named(bash: Bash, command: str, code: int, text: str):
    done = bash(command)
    assert text in done.output
    assert done.exit_code == code


def test_a_virtual_environment_of_uv_leads_to_what_is_installed(bash: Bash):
    done = bash(
        "uv venv --python 3.13 .mine && . .mine/bin/activate && uv pip install checker==8.4.1;"
        "command -v python; .mine/bin/python -m greeter; .mine/bin/checker b; deactivate;"
        "python -c 'import sys; print(sys.executable)'; ls .mine/bin | grep -v '^py'"
    )
    lines = [line for line in done.output.splitlines() if "stand-in" not in line]
    assert lines[1:5] == ["/tmp/.mine/bin/python", "greeter 1.0", "checker 8.4.1 b", lines[4]]
    assert lines[4] == "/opt/venv/bin/python"
    assert lines[5:] == ["activate", "checker", "chk", "greet", "pip", "pip3"]


def test_a_virtual_environment_of_python_leads_to_what_is_installed(bash: Bash):
    done = bash(
        "python3 -m venv --clear .own && source .own/bin/activate && pip install -q checker==8.4.1;"
        "python -m checker a; deactivate; .own/bin/pip install -q greeter; .own/bin/greet b;"
        "python -m venv .own && .own/bin/python3 -c 'import sys; print(sys.prefix)'"
    )
    lines = [line for line in done.output.splitlines() if "stand-in" not in line]
    assert lines == ["checker 8.4.1 a", "greeter 1.0 b", "/opt/venv"]


def test_the_pip_that_is_there_is_not_installed_again(bash: Bash):
    done = bash(
        "python3 -m ensurepip --upgrade && uv venv own && own/bin/python -m ensurepip &&"
        "own/bin/python -m pip install -q checker==8.4.1 && own/bin/python3 -m checker a"
    )
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "checker 8.4.1 a")


def test_a_virtual_environment_that_python_made_before_is_led_there(bash: Bash):
    made = "$(PATH=/usr/local/bin:/usr/bin command -v python3) -m venv --without-pip .old"
    done = bash(f"{made} && python3 -m venv .old && .old/bin/python -m checker a")
    assert done.output.endswith("checker 8.4.1 a\n")


def test_python_is_itself_for_all_else(bash: Bash):
    done = bash(
        "echo 'import sys; print(sys.prefix, sys.argv)' | python - a; python3 -c 1; exit $?"
    )
    assert done.output == "/opt/venv ['-', 'a']\n"
    assert done.exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        "pip install checker==8.4.1",
        "pip3 install --break-system-packages -q --no-cache-dir 'checker>=8,<9' greeter",
        "python3 -m pip install --upgrade pip checker",
        "python -m pip install -i https://x.example 'greeter[loud]' --timeout 30",
        "pip install 'greeter[loud]==1.0; python_version > \"3\"' 'absent; os_name == \"nt\"'",
        "printf '# it\\nGreeter==1.0  # so\\n-r r2\\n' > r; echo checker > r2; pip install -r r",
        "uv pip install --system --link-mode copy checker==8.4.1 uv",
        "uv init && uv add checker==8.4.1",
        "pipx ensurepath && pipx install checker && uv tool install checker --with plugin",
        "sudo -H pip install checker",
    ],
)
def test_what_is_installed_already_is_not_asked_for_again(bash: Bash, command: str):
    done = bash(command)
    assert done.exit_code == 0, done.output
    assert ("already satisfied" in done.output) is ("-q" not in command)


@pytest.mark.parametrize(
    "missing", ["checker==8.4.2", "'greeter[silent]'", "elsewhere", "git+https://x.example/it.git"]
)
def test_what_is_not_installed_cannot_be(bash: Bash, missing: str):
    done = bash(f"python3 -m pip install greeter {missing}")
    assert f"not prepared: {missing.strip(chr(39))}\nERROR: No matching" in done.output
    assert done.exit_code == 1


def test_pip_itself_answers_what_needs_no_network(bash: Bash):
    listed = bash("pip list --format=freeze").output
    assert listed == "checker==8.4.1\ngreeter==1.0\nvoice==0.5\n"


@pytest.mark.parametrize(
    "fetch",
    [
        "curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh",
        "curl -LsSf https://astral.sh/uv/install.sh -o /tmp/uv.sh && sh /tmp/uv.sh",
        "curl -fsSLO https://astral.sh/uv/0.8.0/install.sh && bash install.sh",
        "wget -qO- https://astral.sh/uv/install.sh | sh",
        "wget -q https://astral.sh/uv/0.9.5/install.sh && sh install.sh",
        "wget --output-document=it.sh https://astral.sh/uv/0.9.5/install.sh && sh it.sh",
    ],
)
def test_the_installer_of_uv_leaves_what_scripts_use_after_it(bash: Bash, fetch: str):
    done = bash(
        f"set -e -o pipefail; ({fetch}) 2> /dev/null; . $HOME/.local/bin/env;"
        "uvx greeter==1.0 2>&1 || true; $HOME/.local/bin/uvx --from greeter==1.0 greet c;"
        "source $HOME/.cargo/env"
    )
    assert done.exit_code == 0, done.output
    assert done.output.endswith("greeter 1.0 c\n")


def test_another_download_finds_no_network_and_this_machine_is_there(bash: Bash):
    done = bash(
        "curl -sS https://astral.sh/about > got; echo $?; cat got; wget -q https://x.example"
    )
    assert done.exit_code == 4, done.output
    assert "6\n" in done.output
    if not Path("/usr/bin/curl").exists():
        return
    local = bash(
        "echo hello > it; curl -s file:///tmp/it; python3 -u -m http.server 8765 > log 2>&1 &\n"
        "until grep -qs Serving log; do sleep 0.05; done; curl -s localhost:8765/it"
    )
    assert local.output == "hello\nhello\n"


def test_installing_for_the_system_succeeds_and_says_that_nothing_was_installed(bash: Bash):
    done = bash(
        "sudo apt-get update && apt-get install -y curl > out && apt install x && ls -s out"
    )
    assert done.exit_code == 0
    assert done.output.count("nothing was installed") == 3
    assert done.output.endswith("0 out\n")


def test_sudo_runs_the_command_with_its_variables(bash: Bash):
    done = bash("sudo -E -u nobody A='1 2' sh -c 'echo \"$A\" $0' b; sudo -n false || echo failed")
    assert done.output == "1 2 b\nfailed\n"
