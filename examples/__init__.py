"""Examples that run: ``make run`` starts :mod:`examples.nycflights`."""
