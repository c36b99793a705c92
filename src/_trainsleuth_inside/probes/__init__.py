"""The probes: each patches or hooks one part of torch and records facts. None of them judges."""
