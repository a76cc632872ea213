"""Scorers: what a trial is worth, read from its log."""
