"""Trials of scenarios: scripted answers, tools and hooks."""
