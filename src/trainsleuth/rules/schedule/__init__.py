"""Rules of the family `schedule`."""
