"""Time: timestamps (:mod:`cortado.store.clock.timestamp`) and the hybrid logical clock that issues them."""
