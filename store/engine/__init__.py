"""The ordered bytes on disk: one LMDB environment in a data directory, and an in-memory twin for tests.

``interface.py`` is the seam (:class:`Engine`), ``lmdb_engine.py`` the real one, ``memory.py`` the twin;
``data_directory.py`` makes, locks and checks the directory, ``data_file.py`` reads LMDB's file before LMDB does, and
``failures.py`` maps failures to errors. The engine knows nothing of versions, tables or time.
"""
