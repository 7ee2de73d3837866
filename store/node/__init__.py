"""One node: the host, which is the process, and one group's replica on it.

``host.py`` has what a process has once, and the replicas; ``replica.py`` is what services ask for reads and writes, and
``status.py`` what they are told of both. Inside a replica ``driver.py`` runs the loop's rounds over the log;
``leadership.py`` says who leads, ``group_commit.py`` what waits for more. ``pipeline.py`` takes writes from the line to
the answer, ``proposals.py`` and ``log_entry.py`` say what they become; ``read_timestamps.py`` and ``read_index.py``
find the timestamp of a read. ``state_machine.py`` and ``outstanding.py`` make things durable. The table that gives a
repeated write one effect is in ``request_table/``; ``admission.py`` and ``limits.py`` bound it all. ``transport.py`` is
the seam to the peers, ``snapshots/`` brings whole states.
"""
