"""Garbage collection's bounds, and the leases that keep versions: pure functions over stored state."""
