"""Comparisons, baselines and statistics: pure functions over the trials of a run log."""
