"""Damage that is found here, and the copies of other members that it is repaired from."""
