"""Ranks that do not do the same: one rule per way. They hold the charts of all ranks side by side."""
