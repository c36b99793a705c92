"""Rules of the family `stall`."""
