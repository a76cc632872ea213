from __future__ import annotations

from pathlib import Path

import pytest

from harness.sandbox.packages.index_settings import index_settings


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_settings_of_files_are_found_and_variables_come_before_them(tmp_path: Path):
    home = tmp_path / "home"
    write(
        home / ".config" / "pip" / "pip.conf",
        "[global]\nindex-url = https://files.example/simple\ntrusted_host = files.example\n"
        "target = /somewhere\n[install]\nretries = 7\nuser = yes\n",
    )

    settings = index_settings(
        {"HOME": str(home), "PIP_RETRIES": "2", "PIP_USER": "1", "https_proxy": "http://p:1"}
    )

    assert settings.env["PIP_INDEX_URL"] == "https://files.example/simple"
    assert settings.env["PIP_TRUSTED_HOST"] == "files.example"
    assert settings.env["PIP_RETRIES"] == "2"
    assert settings.env["https_proxy"] == "http://p:1"
    assert not {"PIP_TARGET", "PIP_USER", "HOME"} & set(settings.env)


def test_a_named_file_comes_last_and_no_file_at_all_can_be_named(tmp_path: Path):
    home = tmp_path / "home"
    write(home / ".pip" / "pip.conf", "[global]\nindex-url = https://one.example\n")
    named = write(tmp_path / "mine.conf", "[global]\nindex-url = https://two.example\n")
    host = {"HOME": str(home), "PIP_CONFIG_FILE": str(named)}

    assert index_settings(host).env["PIP_INDEX_URL"] == "https://two.example"
    assert index_settings({**host, "PIP_CONFIG_FILE": "/dev/null"}).env == {}


def test_only_the_files_and_folders_that_are_named_are_shown(tmp_path: Path):
    for name in ("simple", "files", "letters", "wheels"):
        (tmp_path / name).mkdir()
    certificate = write(tmp_path / "ca.pem", "")
    host = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_CERT": str(certificate),
        "PIP_EXTRA_INDEX_URL": f"https://files.example/simple {(tmp_path / 'simple').as_uri()}",
        "PIP_FIND_LINKS": f"{tmp_path / 'wheels'} {tmp_path / 'missing'} / relative",
    }

    shown = index_settings(host).mounts

    names = ("ca.pem", "files", "simple", "wheels")
    assert [mount.source for mount in shown] == [tmp_path / name for name in names]
    assert all(mount.target == str(mount.source) and not mount.writable for mount in shown)


@pytest.mark.parametrize("text", ["no section", "[global\n", "[global]\nindex-url\n", "\udcff"])
def test_a_broken_file_is_left_to_the_pip_of_the_host(tmp_path: Path, text: str):
    path = tmp_path / "pip.conf"
    path.write_bytes(text.encode(errors="surrogateescape"))
    other = {"PIP_CONFIG_FILE": str(path), "PIP_INDEX_URL": "https://one.example"}
    assert index_settings(other).env["PIP_INDEX_URL"] == "https://one.example"


def test_credentials_are_not_in_what_is_printed_of_them():
    settings = index_settings({"PIP_INDEX_URL": "https://me:secret@files.example"})
    assert "secret" not in repr(settings)
