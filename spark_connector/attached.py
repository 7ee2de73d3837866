"""``attach_database()``: a temporary view for each table of a database, which reads anew in every query.

A view over one ``load()`` would show the table at the time of the attachment for ever. But the text of a view of SQL is
resolved in each query that names it, and a table of Spark's catalogue is loaded each time::

    view         flights  =  SELECT * FROM spark_catalog.cortado_1f3a….flights WITH (…, table = 'nyc.flights')
    catalogue    cortado_1f3a….flights  USING cortado      its columns, and nothing else: Spark keeps no options for it
    each query   a fresh reader, with the options behind WITH, whose time is that of the query's first action

So each query reads each table at one timestamp, however often it names it, and a DataFrame keeps its own. Two tables of
one query have two: ``sql()`` gives them one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

OPTIONS: Final = (
    "endpoint",
    "timeoutSeconds",
    "tlsCa",
    "tlsCert",
    "tlsKey",
    "token",
    "tokenFile",
    "partitions",
    "hold",
    "replicaRead",
)
"""The options of a read that the views are made with."""


def attach_database(spark: SparkSession, database: str, **options: Any) -> list[str]:
    """Make, or replace, a temporary view for each table of ``database``, named as the table; and return their names.

    The views are the session's, as any temporary view, and have the columns that the tables have now. The ``options``
    are those of a read that are for all tables. If an error is raised, nothing is made: InvalidArgument, NotFound,
    Unavailable; Unsupported if the session's catalogue outlives it (Hive's), and for a table with columns that Spark
    has no types for.
    """
    from cortado.errors import Unsupported
    from pyspark_cortado.clients import open_client
    from pyspark_cortado.defaults import with_defaults
    from pyspark_cortado.options import given_options, read_options
    from pyspark_cortado.reader import table_schema

    given = with_defaults(spark, given_options(options, OPTIONS, "attach_database()"))
    catalogue = spark.conf.get("spark.sql.catalogImplementation", "in-memory")
    if catalogue != "in-memory":
        raise Unsupported(f"attach_database() beside a catalogue of {catalogue}", "use sql(), or views of load()")
    connection = read_options({**given, "table": f"{database}.any"}).connection
    with open_client(connection) as client:
        tables = [each.name for each in client.tables(database)]
    # Nothing is read yet: each query chooses its own time.
    unread = {**given, "hold": "false"}
    schemas = {name: table_schema(read_options({**unread, "table": f"{database}.{name}"}))[0] for name in tables}
    home = f"cortado_{uuid4().hex}"
    folder = Path(tempfile.mkdtemp(prefix="cortado-attached-")).as_uri()
    spark.sql(f"CREATE DATABASE {home} LOCATION '{folder}'")
    for name, schema in schemas.items():
        spark.sql(f"CREATE TABLE {home}.`{name}` ({_columns(schema)}) USING cortado")
        described = {**given, "table": f"{database}.{name}"}
        words = ", ".join(f"'{option}' = {_quoted(value)}" for option, value in described.items())
        source = f"SELECT * FROM spark_catalog.{home}.`{name}` WITH ({words})"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{name}` AS {source}")
    return tables


def _columns(schema: StructType) -> str:
    """As SQL declares them; inside of a column everything may be null, which a read may say."""
    columns = ((f"`{each.name}` {each.dataType.simpleString()}", each.nullable) for each in schema.fields)
    return ", ".join(column if nullable else f"{column} NOT NULL" for column, nullable in columns)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
