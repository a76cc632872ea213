"""A task's Python packages and tools, built once and mounted."""
