"""Aggregates of rows by group, worked out on columns."""
