"""Rules of the family `crash`."""
