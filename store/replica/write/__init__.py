"""Writes: from the line to the entry, and from the commit to the answer (``pipeline.py``)."""
