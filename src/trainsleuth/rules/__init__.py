"""The catalogue: one file a rule, each a pure function from a chart to a verdict, and the arbiter that puts them together."""
