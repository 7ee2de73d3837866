"""Observability of a node: metrics, readiness, logs, slow requests, traces.

::

    hot paths ── plain numbers (measures) ──┐
    node, log, engine, transport, process ──┴─► collecting ──► families, as in definitions
                                                                  ├─► /metrics (Prometheus)
                                                                  └─► cortado.v1.Statistics ─► cortado top

For this, a hot path adds to a number or to a bucket of a histogram; everything else happens when a scraper or a caller
asks. :mod:`~cortado.store.observe.definitions` is the one list of the metrics and their meanings.
"""
