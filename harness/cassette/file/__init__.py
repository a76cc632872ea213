"""One cassette file: its lines, how they are found, added and brought together."""
