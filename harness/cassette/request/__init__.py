"""What makes two requests the same."""
