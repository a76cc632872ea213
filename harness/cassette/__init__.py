"""Recorded model traffic, tool results and verdicts: recorded once, replayed for ever."""
