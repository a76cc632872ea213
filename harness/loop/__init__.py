"""The loop engine: the thing under test."""
