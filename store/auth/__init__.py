"""Who may do what (``docs/adr/0055``, ``docs/roles.md``): principals, their tokens and grants, and the decision.

::

    tokens.py     the text of a token, and its digest
    roles.py      roles, permissions, resources; decide from a principal's grants
    stored.py     keys and values in the catalogue's space
    state.py      one state of all that, read key by key
    current.py    the same in memory, at one place of the log: who calls, and what it may
    changes.py    what changes it: pure functions of a state
    caller.py     the call that is served: who asks, and what a write of it is checked for where it is appended

Pure: nothing here knows a disk, a network or a clock.
"""
