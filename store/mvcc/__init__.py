"""Versions over the engine's bytes: every value of every key, each at the timestamp of the commit that wrote it.

Commands read through ``reader.py``, and return the values of ``mutations.py`` and ``evaluation.py``; ``store.py`` reads
and writes versions (``stored.py``; their bytes: ``versions.py``), and ``split.py`` divides them into parts.
``stored_messages.py`` is protobuf as stored values, ``paging.py`` the place at which a listing goes on.
"""
