"""Trials that Harbor ran, as a run of ours."""
