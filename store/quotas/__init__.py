"""How much may be asked, and stored (``docs/adr/0057``, ``docs/quotas.md``): quotas of principals, databases and
namespaces, and what a node counts against them.

::

    quota.py      what is limited, and by how much
    stored.py     all quotas as one value in the catalogue's space
    changes.py    what changes them: pure functions of a state
    bucket.py     tokens that come at a rate, and may be owed
    meters.py     of one node: who has used how much, and what is refused

Pure: nothing here knows a disk, a network or a clock.
"""
