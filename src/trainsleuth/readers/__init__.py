"""Readers turn what a run left behind (logs, event files, tables, tracebacks) into facts; `kinds` says what both are."""
