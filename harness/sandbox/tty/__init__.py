"""Terminals: what is typed, and what the screen shows."""
