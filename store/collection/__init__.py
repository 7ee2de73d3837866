"""What may be collected, and what keeps it: pure functions over what is stored."""
