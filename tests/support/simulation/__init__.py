"""A whole cluster in one process, deterministic from one seed: see ``docs/testing.md``.

::

    simulate(seed) ─► Cluster ── hosts ──► production Node on its own NodeLoop     loop.py
         │               │                   │        │          `- Storage, Engine  disk.py
         │               │                   │        `------------ Transport        network.py
         │               │                   `--------------------- wall, monotonic  clocks.py
         ├── Nemesis ────┤  faults, and their times                                faults.py
         ├── Workload ───┘  calls of clients, and the answers                    workload, transactors, indexers.py
         └── Watch, verdicts: invariants after each step, and at the end           watch.py, checkers.py
"""
