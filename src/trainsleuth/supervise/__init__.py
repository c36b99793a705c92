"""Runs a program under observation: the process, its facts as they are written, the findings as they appear."""
