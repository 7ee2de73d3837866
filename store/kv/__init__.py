"""The key-value API as pure functions: bytes by bytes, ordered, in namespaces."""
