"""A small text detector with differentiable binarisation."""
