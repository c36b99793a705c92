"""It stands still: one rule per way to do so. They read what was seen from outside."""
