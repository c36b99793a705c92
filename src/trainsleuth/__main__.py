"""`python -m trainsleuth` is the command line."""

from trainsleuth.cli import main

main()
