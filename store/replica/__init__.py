"""One group's replica: its log, and the reads, writes and duties that follow it.

Services ask ``replica.py`` for reads and writes. ``driver.py`` runs the loop's rounds over the log, and ``rounds.py``
names their phases; ``leadership.py`` tracks the leader. ``log_writer.py`` makes the log durable.

- ``write/``: from a proposal in line to the entry and the answer, and the table that gives a repeated write one effect
- ``read/``: the timestamp of a read, and the round that makes it linearizable
- ``apply/``: committed entries become stored items
- ``features/``: state in memory that follows the log
- ``duties/``: the leader's long work; ``collection/``: its removal of old versions
- ``feed/``: changes on their way to watches
- ``snapshots/``: the whole state, for a member that fell behind
- ``repair/``: damage: found, and made whole from other members

A replica knows its process (``store/process``) and nothing of the host above it.
"""
