"""Large transactions: their records, which decide, and what they stage under keys, which obeys. Pure functions.

Coordinator (:mod:`.records`) and participant (:mod:`.stage`) know of each other only what a record says: in one group
both are evaluated at the same place of one log; in several the record is in one of them.
"""
