"""What pip says that it did not find, and what comes closest."""

from __future__ import annotations

import pytest

from harness.sandbox.packages.missing import Missing, has_wheel_of, instead_of, read_missing

SAID = """\
ERROR: Ignored the following yanked versions: 1.11.0
ERROR: Could not find a version that satisfies the requirement {} (from versions: {})
ERROR: No matching distribution found for it
"""


@pytest.mark.parametrize(
    ("requirement", "versions", "expected"),
    [
        ("a==1.4", "1.9, 2.0, 1.10rc1, 1.3", Missing("a==1.4", ("1.9", "2.0", "1.3"))),
        ("A.b[c]==1", "none", Missing("A.b[c]==1", ())),
        ("a==1.4+cpu", "1.5, 1.5+cpu, 1.6+cu118", Missing("a==1.4+cpu", ("1.5", "1.6"))),
        ("a<2,>=1 (from b==1->c)", "3", Missing("a<2,>=1", ("3",))),
        ("(broken)", "3", None),
    ],
)
def test_what_is_missing_is_read_from_what_pip_says(
    requirement: str, versions: str, expected: Missing | None
):
    assert read_missing(SAID.format(requirement, versions)) == expected
    assert read_missing("ERROR: something else") is None


@pytest.mark.parametrize(
    ("text", "versions", "closest"),
    [
        ("a==1.4", ("1.3", "1.10", "1.9", "2.0"), "1.9"),
        ("a[x]==1.4.0", ("1.4.1", "1.4"), "1.4.1"),
        ("a==3", ("1.3", "1.10", "1.9"), "1.10"),
        ("a==1.4", (), None),
        ("a<1.4", ("2.0",), None),
        ("a==1.4.*", ("2.0",), None),
        ("a==1.4.2+cpu", ("1.4.1", "1.9", "2.0"), "1.9"),
        ("a==1.4+cpu", ("1.3", "1.4.0", "1.9"), "1.4.0"),
    ],
)
def test_the_next_version_comes_closest_and_then_the_last(
    text: str, versions: tuple[str, ...], closest: str | None
):
    assert Missing(text, versions).closest() == closest


def test_only_the_pins_of_that_version_are_replaced():
    words = ["a==1.4", "A[x] == 1.4; os_name == 'posix'", "a==1.5", "ab==1.4", "a", "--pre"]
    assert instead_of(words, Missing("a==1.4", ("1.9",)), "1.9") == {
        "a==1.4": "a==1.9",
        "A[x] == 1.4; os_name == 'posix'": "A[x] == 1.9; os_name == 'posix'",
    }


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("my_name-1.4.0-cp38-cp38-manylinux1_x86_64.whl", True),
        ("my_name-1.4+cpu-cp38-cp38-linux_x86_64.whl", True),
        ("my_name-1.4.0%2Bcpu-cp38-cp38-linux_x86_64.whl", True),
        ("other-1.4-py3-none-any.whl\nmy_name-1.40-py3-none-any.whl\nmy_name-1.4.tar.gz", False),
    ],
)
def test_wheels_of_a_version_are_found_by_their_names(listed: str, expected: bool):
    assert has_wheel_of(Missing("My.Name==1.4", ()), listed) is expected
