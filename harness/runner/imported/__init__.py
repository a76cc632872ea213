"""Conversations that others recorded, as tasks that can be run."""
