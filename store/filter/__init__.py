"""The filter language: text, tokens, tree, bound to a schema, evaluated over columns (``docs/filters.md``)."""
