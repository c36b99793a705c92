"""Rules of the family `cache`."""
