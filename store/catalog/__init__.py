"""The catalogue: databases, tables, indexes, subjects and schemas, stored as versioned keys of the space ``m``."""
