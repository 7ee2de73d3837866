"""Observability of a node: metrics, readiness, logs, slow requests, traces.

::

    hot paths ── plain numbers (measures) ──┐
    node, log, engine, transport, process ──┴─► collecting ──► families, as in definitions
                                                                  ├─► /metrics (Prometheus)
                                                                  └─► cortado.v1.Statistics ─► cortado top

What a hot path does for it is adding to a number or to a bucket of a histogram; everything else happens when somebody
asks. :mod:`~cortado.store.observe.definitions` is the one list of what there is and what it means.
"""
