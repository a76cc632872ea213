"""The tools that agents are offered, and the registry that runs them."""
