"""One node: the host, which is the process, and one group's replica on it.

``host.py`` holds the process's own parts, and the replicas. Services ask ``replica.py`` for reads and writes, and
``status.py`` for the state of both. Inside a replica ``driver.py`` runs the loop's rounds over the log.
``leadership.py`` tracks the leader, ``group_commit.py`` decides the waits. ``pipeline.py`` takes writes from the line
to the answer; ``proposals.py`` and ``log_entry.py`` are their forms. ``read_timestamps.py`` and ``read_index.py`` find
the timestamp of a read. ``state_machine.py`` and ``outstanding.py`` make things durable. The table that gives a
repeated write one effect is in ``request_table/``; ``admission.py`` and ``limits.py`` bound it all. ``transport.py`` is
the seam to the peers, ``snapshots/`` brings whole states.
"""
