"""Cassettes kept in order: audited, pruned, repaired."""
