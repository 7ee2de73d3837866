"""Committed entries become stored items, the same on every replica (``state_machine.py``)."""
