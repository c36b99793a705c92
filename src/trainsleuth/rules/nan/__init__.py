"""Rules of the family `nan`."""
