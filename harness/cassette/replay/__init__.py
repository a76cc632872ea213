"""One trial and its cassette: what it is answered, what it adds, what it misses."""
