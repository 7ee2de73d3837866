"""Facts for a bug report, checks for an operator, and a bundle; never a secret.

::

    probes (each in a thread, bounded in time)             checks                     out
    host.py             versions, memory, limits, clock ─┐
    data_directory.py   identity, sizes, disk, sync ─────┤
    nodes.py            each node's own status ──────────┼─► facts ─► checks.py ─►  table, JSON, exit code
    certificates.py     until when they are valid ───────┤     │
    logs, metrics ───── redact.py ───────────────────────┘     └─► bundle.py ─────► FILE.tar.gz

Facts are plain dictionaries, as they stand in the bundle. A probe that fails leaves ``{"problem": ...}``. It never ends
the others: they are needed most when something is broken. Checks are a pure function of facts.
"""
