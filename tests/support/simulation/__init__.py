"""A whole cluster in one process, deterministic from one seed: see ``docs/testing.md``.

::

    simulate(seed) ─► Cluster ── hosts ──► production Node on its own NodeLoop     loop.py
         │               │                   │        │          `- Storage, Engine  disk.py
         │               │                   │        `------------ Transport        network.py
         │               │                   `--------------------- wall, monotonic  clocks.py
         ├── Nemesis ────┤  what goes wrong, and when                              faults.py
         ├── Workload ───┘  what clients ask, and what they were told            workload, transactors, indexers.py
         └── Watch, verdicts: what must hold after each step, and at the end       watch.py, checkers.py
"""
