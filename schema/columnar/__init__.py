"""Avro bodies to and from columns, many rows at once. The map of the package is in :mod:`...columnar.decode`."""
