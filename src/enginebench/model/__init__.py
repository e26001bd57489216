"""Frozen data that the rest of the program hands around. No behaviour, no I/O."""
