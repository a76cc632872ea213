"""What people look at: the run log as one HTML page."""
