"""The filter language: text, tokens, tree, held against a schema, evaluated over columns (``docs/filters.md``)."""
