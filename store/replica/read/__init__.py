"""Reads: the timestamp of each (``read_timestamps.py``), and the round that confirms it (``read_index.py``)."""
