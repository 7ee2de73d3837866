"""Removing what nobody can read any more: old versions, what was deleted long ago, what was dropped."""
