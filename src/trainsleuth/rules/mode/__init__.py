"""Rules of the family `mode`."""
