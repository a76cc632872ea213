"""Other recorders of LLM calls, in an environment of their own: `requirements-peers.txt`."""
