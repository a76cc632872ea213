"""Keeping the beginning and the end of a stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.excerpt import Excerpt


@given(st.lists(st.binary(max_size=50)), st.integers(2, 100).map(lambda half: 2 * half))
def test_an_excerpt_is_the_stream_or_its_two_ends(chunks: list[bytes], limit: int):
    excerpt = Excerpt(limit)
    for chunk in chunks:
        excerpt.add(chunk)
    stream = b"".join(chunks)
    if len(stream) <= limit:
        assert excerpt.text() == stream.decode(errors="replace")
    else:
        assert f"[{len(stream) - limit} bytes cut]" in excerpt.text()


def test_a_character_that_the_cut_goes_through_is_left_out():
    excerpt = Excerpt(10)
    excerpt.add("aäöüäöüäöüz".encode())
    assert excerpt.text() == "aäö\n[10 bytes cut]\nöüz"
