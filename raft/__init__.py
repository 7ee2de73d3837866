"""Replication: the log that every change goes through. Knows nothing of tables or services."""
