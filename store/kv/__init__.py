"""Key-value pairs as pure functions: ordered bytes to bytes, in namespaces."""
