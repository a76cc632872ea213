"""Record and replay evaluation of LLM agent loops."""
