"""Cortado as a Spark data source: ``spark.read.format("cortado")``, with nothing to register.

:func:`table` and :func:`sql` make such reads: a chain of words, or a query of Spark's over many tables.
:func:`attach_database` makes views of them.

Spark imports every package named ``pyspark_*`` in every session, to look for a ``DefaultSource``. So this package is
light at the top: it imports pyspark and nothing else, and loads the client and Arrow when a table is read or written.
"""

from pyspark_cortado.attached import attach_database
from pyspark_cortado.queries import table
from pyspark_cortado.source import DefaultSource
from pyspark_cortado.statements import sql

__all__ = ["DefaultSource", "attach_database", "sql", "table"]
