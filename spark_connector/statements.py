"""``sql()``: a Spark query over tables of Cortado; it reads from each only the rows and columns that it needs, at one
timestamp.

The query runs in Spark as it is written: joins, windows, functions. Each name of a table of Cortado is replaced by a
fresh ``load()``. It has the columns that the query names, and those of its conditions that mean the same to the node
(:mod:`pyspark_cortado.references`). Spark applies each condition again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cortado.store.client import Client
    from pyspark_cortado.hints import Literals
    from pyspark_cortado.references import Reference, Shape

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
"""The options of a read that ``sql()`` takes: they are for all of its tables."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def sql(spark: SparkSession, text: str, *, at: Any = None, **options: Any) -> DataFrame:
    """Return Spark's answer to ``text``, a query in its own SQL.

    Tables of Cortado are named ``database.table``; other names are Spark's, views for example. All tables are read at
    one timestamp: ``at`` (a Timestamp, its text, or a datetime with a zone), by default now. The ``options`` are those
    of a read that are for all tables: ``endpoint``, ``tlsCa`` ...

    Each call reads anew. Raises InvalidArgument with line and column for a text that does not parse, Unsupported for
    another statement than a query, NotFound, Unavailable; and Spark's errors.
    """
    from cortado.extras import needing
    from pyspark_cortado.clients import open_client
    from pyspark_cortado.defaults import with_defaults
    from pyspark_cortado.options import given_options, read_options

    with needing("spark", "sql()"):
        from pyspark_cortado.references import Statement

    given = with_defaults(spark, given_options(options, OPTIONS, "sql()"))
    statement = Statement(text)
    connection = read_options({**given, "table": statement.tables[0]}).connection
    with open_client(connection) as client:
        moment = str(client.now()) if at is None else time_text(at)
        shapes = {name: _shape(client, name, moment) for name in statement.tables}
    references = statement.references(shapes, literals_of(spark, text))
    frames: dict[str, Any] = {
        f"t{place}": _frame(spark, reference, shapes[reference.table].version, {**given, "at": moment})
        for place, reference in enumerate(references)
    }
    return spark.sql(statement.template(), **frames)


def time_text(at: Any) -> str:
    """Return a time as the option ``at`` has it. Raises InvalidArgument."""
    from cortado.store.client.values import at_to_proto

    at_to_proto(at)
    return at.isoformat() if isinstance(at, datetime) else str(at)


def _shape(client: Client, table: str, at: str) -> Shape:
    from pyspark_cortado.references import Shape

    described = client.at(at).describe(table)
    newest = client.schemas.get(described.subject)
    return Shape(client.schemas.get_by_id(newest.schema_id), newest.version, described.key[0].path.partition(".")[0])


def _frame(spark: SparkSession, reference: Reference, version: int, options: dict[str, str]) -> DataFrame:
    reader = spark.read.format("cortado").options(**options).option("table", reference.table)
    reader = reader.option("schemaVersion", version)
    if reference.columns is not None:
        reader = reader.option("columns", ",".join(reference.columns))
    if reference.filter is not None:
        reader = reader.option("filter", reference.filter)
    if reference.limit is not None:
        reader = reader.option("limit", reference.limit).option("partitions", 1)
    return reader.load()


def literals_of(spark: SparkSession, text: str) -> Literals | None:
    """Return how Spark reads the literals of ``text``; None if the session makes it read names or texts in its own
    way."""
    from pyspark.sql.types import StringType

    from pyspark_cortado.hints import Literals

    for name, plain in (
        ("spark.sql.caseSensitive", "false"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
        ("spark.sql.timestampType", "TIMESTAMP_LTZ"),
    ):
        if str(spark.conf.get(name, plain)).lower() != plain.lower():
            return None
    # Under another collation than the usual one, different texts would be equal.
    if spark.sql("SELECT 'x' AS x").schema["x"].dataType != StringType():
        return None

    def moment(literal: str) -> str | None:
        found = spark.sql(f"SELECT unix_micros(TIMESTAMP_LTZ '{literal}') AS us").first()
        assert found is not None
        try:
            return (_EPOCH + timedelta(microseconds=found["us"])).isoformat().replace("+00:00", "Z")
        except OverflowError:
            return None

    return Literals(text, moment)
