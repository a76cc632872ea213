"""What a Dockerfile makes, read and not run."""
