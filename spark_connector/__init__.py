"""Cortado as a Spark data source: ``spark.read.format("cortado")``, with nothing to register.

:func:`sql` runs a query of Spark's over tables, and :func:`attach_database` makes views of them. :func:`lookup_join`
joins a DataFrame with a table by the keys that occur, :func:`delete_where` deletes rows by a filter.
:func:`avro_schema_of`, :func:`spark_schema_of` and :func:`create_table_like` convert Spark's types to Avro's and back.

Spark imports every package named ``pyspark_*`` in every session, to look for a ``DefaultSource``. So this package is
light at the top: it imports pyspark and nothing else, and loads the client and Arrow when a table is read or written.
"""

from pyspark_cortado.attached import attach_database
from pyspark_cortado.deletes import delete_where
from pyspark_cortado.lookup import lookup_join
from pyspark_cortado.schemas import avro_schema_of, create_table_like, spark_schema_of
from pyspark_cortado.source import DefaultSource
from pyspark_cortado.statements import sql

__all__ = [
    "DefaultSource",
    "attach_database",
    "avro_schema_of",
    "create_table_like",
    "delete_where",
    "lookup_join",
    "spark_schema_of",
    "sql",
]
