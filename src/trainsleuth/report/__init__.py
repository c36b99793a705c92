"""What the user reads: terminal, Markdown and JSON, each made from the same diagnosis."""
