"""Garbage collection: old versions, versions below deletes, dropped tables."""
