"""Knob `cold-cache`: a cache that earlier runs have left is not there, and the program makes its entries anew.

Changes        the named folder or file is missing in the trial's own view of the file system; the sandbox sees to that, nothing is done from inside
Mechanism      entries that were made by another version of the program, or under another configuration
Not applicable when nothing lies at that path
"""
