"""Vendors' wire formats as pure dialects, their live clients, and a scripted provider."""
