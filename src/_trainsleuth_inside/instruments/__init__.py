"""Deep instruments: dispatch modes that see every operation. For trials, and live only around a replay of one recorded call."""
