"""The parts that a process has once, whatever groups it takes part in: stores, clock, bounds, threads, transport.

``process.py`` holds them as one value, which every replica gets. ``admission.py``, ``budget.py`` and ``limits.py``
bound the work in flight. ``storage_thread.py``, ``log_storage.py`` and ``scan_threads.py`` run work beside the loop or
on it. ``clock_watch.py`` compares this host's clock with the peers'. ``transport.py`` is the seam to them. Nothing here
knows a replica.
"""
