"""The host: it opens the groups of one node, makes their replicas, starts and stops them, and tells their status."""
