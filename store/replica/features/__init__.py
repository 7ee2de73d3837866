"""Features that keep a part of a replica's state in memory: a module each, and their registration."""
