"""Reads: the timestamp of each (``read_timestamps.py``), the round that confirms it (``read_index.py``), and the turns
of those that go on together (``turns.py``)."""
