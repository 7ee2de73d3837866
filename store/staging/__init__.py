"""Large transactions: their records, which decide, and the values that they stage under keys, which obey. Pure
functions.

Coordinator (:mod:`.records`) and participant (:mod:`.stage`) share the record alone: in one group both are evaluated at
the same place of one log; in several the record is in one of them.
"""
