"""Half precision that harms a training."""
