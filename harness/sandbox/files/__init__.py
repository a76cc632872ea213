"""The files of a container, seen from outside of it."""
