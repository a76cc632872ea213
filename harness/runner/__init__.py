"""From a plan to trials in a run log."""
