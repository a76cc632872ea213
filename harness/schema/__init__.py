"""What is written to files: frozen, versioned, without behaviour."""
