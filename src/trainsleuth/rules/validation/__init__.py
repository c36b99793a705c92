"""Rules of the family `validation`."""
