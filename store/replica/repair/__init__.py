"""Repair of damaged data on this node from the copies of other members."""
