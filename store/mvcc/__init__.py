"""Versions over the engine's bytes: every value of every key, each at the timestamp of the commit that wrote it.

``reader.py`` is what commands read through, ``mutations.py`` and ``evaluation.py`` what they return; ``store.py`` reads
and writes versions (their bytes: ``versions.py``), and ``split.py`` divides them into parts.
"""
