"""Remedies: source patches, made from a finding's rule and lines as rewrites of the syntax tree; changed variables; advice."""

from trainsleuth.remedies.patch import Patch, apply
from trainsleuth.remedies.propose import candidates, propose

__all__ = ["Patch", "apply", "candidates", "propose"]
