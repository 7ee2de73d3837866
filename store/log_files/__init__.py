"""Append-only files beside LMDB: the log entries and hard states of all groups of a process, in one sequence.

``log_files.py`` is the door (:class:`LogFiles`): open and recover, ``take_groups``, append durably, close. Below it
stand the bytes of a frame (``frames.py``) and of a segment (``segments.py``), the effect of records on their groups
(``ledger.py``), recovery at a start (``recovery.py``), and the disk (``files.py``). ``walk.py`` reads for operators,
``verifying.py`` beside the thread that appends.
"""
