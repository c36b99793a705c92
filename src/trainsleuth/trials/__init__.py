"""Trials: the program is run again in a sandbox with one knob changed, and what that does settles a cause."""
