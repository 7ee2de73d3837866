"""One replica: it drives the log, the storage thread and the transport, and answers.

``node.py`` is the face that services talk to. Inside, ``driver.py`` runs the loop's rounds over the log;
``leadership.py`` says who leads, ``group_commit.py`` what waits for more. ``pipeline.py`` takes writes from the line to
the answer, ``proposals.py`` and ``log_entry.py`` say what they become; ``read_timestamps.py`` and ``read_index.py``
find the timestamp of a read. ``state_machine.py`` and ``outstanding.py`` make things durable. The table that gives a
repeated write one effect is in ``request_table/``; ``admission.py`` and ``limits.py`` bound it all. ``transport.py`` is
the seam to the peers, ``snapshots/`` brings whole states.
"""
