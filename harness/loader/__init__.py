"""Folders that people write, as the suites and tasks the runner uses."""
