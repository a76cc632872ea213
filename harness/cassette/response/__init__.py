"""What is kept of an answer."""
