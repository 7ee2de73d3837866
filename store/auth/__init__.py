"""Authorization (``docs/adr/0055``, ``docs/roles.md``): principals, their tokens and grants, and the decision.

::

    tokens.py     the text of a token, and its digest
    roles.py      roles, permissions and resources, and the decision from a principal's grants
    stored.py     keys and values in the catalogue's space
    state.py      principals and grants of one state, read key by key
    current.py    the same in memory, at one place of the log: decides calls
    changes.py    changes of principals and grants: pure functions of a state
    owners.py     owners of names and numbers, and the bounds that principals share
    caller.py     the principal of the call being served, and the check of its writes where they are appended

Pure: nothing here knows a disk, a network or a clock.
"""
