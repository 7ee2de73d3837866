"""Replication: the Raft log of all changes. It knows nothing of tables or services."""
