"""Rules of the family `logging`."""
