"""Processes in a view of their own."""
