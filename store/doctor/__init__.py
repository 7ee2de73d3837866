"""What a bug report needs, and what an operator should look at first: facts, checks, and a bundle; never a secret.

::

    probes (each in a thread, bounded in time)             checks                     out
    host.py             versions, memory, limits, clock ─┐
    data_directory.py   identity, sizes, disk, sync ─────┤
    nodes.py            what each node says of itself ───┼─► facts ─► checks.py ─►  table, JSON, exit code
    certificates.py     until when they are valid ───────┤     │
    logs, metrics ───── redact.py ───────────────────────┘     └─► bundle.py ─────► FILE.tar.gz

Facts are plain dictionaries, as they stand in the bundle. A probe that fails leaves ``{"problem": ...}``; it never ends
the others, since they are needed most where something is broken. Checks are a pure function of facts.
"""
