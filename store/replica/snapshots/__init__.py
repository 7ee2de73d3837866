"""Snapshots: a copy of a group's whole state, through a file, for a replica that fell behind or is damaged."""
