"""The guide, held against one that was written by hand."""

from pathlib import Path

GUIDE = Path("/root/guide.md")


def test_the_guide_reads_as_it_should():
    expected = Path(__file__).with_name("guide.md").read_text()
    assert GUIDE.read_text().strip() == expected.strip()


def test_what_docker_ignores_never_reached_the_machine():
    assert not Path("/root/drafts").exists()
