"""Cortado beside Spark's JDBC source on PostgreSQL, in one Spark session: ``make bench-spark``.

All systems run at once, and each load goes to one after the other, turn by turn, so that a change in the machine's load
meets all. The same rows, on the same disk, every write synced; each in the way that its users would take, and the
fastest of these::

    one, three     the data source ``cortado``, on one node and on three     cortado_side.py
    jdbc           Spark's own JDBC source, on PostgreSQL                    jdbc_side.py
    idle           a Python source that stores nothing: Spark's own limit    idle_side.py

Storage, Spark's JVM and its Python workers share the machine's cores. So beside the time of a load stands the CPU time
of each of them, which other work on the machine changes less.
"""
