"""Long work of the cluster's own, done in steps that are writes: its state is replicated with their effects."""
