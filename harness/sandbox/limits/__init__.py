"""What a container may use of the host."""
