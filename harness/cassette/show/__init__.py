"""Cassettes as people read them."""
