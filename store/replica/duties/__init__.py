"""A leader's long work beside writes: jobs, and large transactions that ended."""
