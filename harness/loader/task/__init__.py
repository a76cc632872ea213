"""A task's folder."""
