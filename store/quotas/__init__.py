"""Quotas: limits on the calls, bytes and storage of principals, databases and namespaces, and the use that a node
counts against them (``docs/adr/0057``, ``docs/quotas.md``).

::

    quota.py      a quota: its target and its limits
    stored.py     all quotas as one stored value
    changes.py    setting and removing quotas: pure functions of a state
    bucket.py     a token bucket that may go into debt
    meters.py     the use of each quota at one node, and the refusals

Pure: nothing here knows a disk, a network or a clock.
"""
