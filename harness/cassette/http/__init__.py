"""The HTTP front: every request of a patched client library goes to the session of its context."""

from __future__ import annotations

from harness.cassette.http.patch import use

__all__ = ["use"]
