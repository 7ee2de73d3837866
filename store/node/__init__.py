"""One replica: it drives the log, the storage thread and the transport, and answers.

``node.py`` is the face that services talk to. Inside, ``turns.py`` runs the loop's turns over the log; ``pipeline.py``
takes writes from the line to the answer, ``proposals.py`` and ``commands.py`` say what they become; ``reads.py`` and
``rounds.py`` find the timestamp of a read. ``state_machine.py`` and ``storing.py`` make things durable. The table that
gives a repeated write one effect is in ``requests.py``, ``known_requests.py`` and ``forgetting.py``; ``admission.py``
and ``limits.py`` bound it all. ``transport.py`` is the seam to the peers, ``snapshots/`` brings whole states.
"""
