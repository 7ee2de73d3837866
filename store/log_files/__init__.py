"""Append-only files beside LMDB: the log entries and hard states of all groups of a process, in one sequence.

``log_files.py`` is the door (:class:`LogFiles`): open and recover, ``take_groups``, append durably, close. Below it
stand the bytes of a frame (``frames.py``) and of a segment (``segments.py``), what records mean to their groups
(``ledger.py``), what a start makes of the files that it finds (``recovery.py``), and the disk (``files.py``).
``walk.py`` reads for a person, ``verifying.py`` beside the thread that appends.
"""
