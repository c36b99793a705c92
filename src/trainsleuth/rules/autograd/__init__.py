"""Rules about gradients that cannot be computed, or are computed wrongly."""
