"""Agents on top of the loop: called from Python, as a step of a workflow, or over HTTP."""

from __future__ import annotations

from harness.agents.agent import Agent

__all__ = ["Agent"]
