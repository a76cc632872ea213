"""Recordings of other makers in, and out: vcrpy cassettes, ATIF, plain conversations."""
