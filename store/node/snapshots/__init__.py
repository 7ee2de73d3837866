"""Bringing up a replica that fell behind, or whose data is damaged: a copy of a group's whole state, through a file."""
