"""Time: timestamps (:mod:`cortado.store.clock.timestamp`), the hybrid logical clock that issues them, and how long old
versions are kept (:mod:`cortado.store.clock.retentions`)."""
