"""``delete_where()``: rows that a filter of Cortado's is true of, as of one timestamp, deleted by a Spark job.

The job reads their keys, filtered by the node, and deletes them. A row that was written after that timestamp fails it:
nothing is deleted that the filter has not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS: Final = (
    "endpoint",
    "timeoutSeconds",
    "tlsCa",
    "tlsCert",
    "tlsKey",
    "token",
    "tokenFile",
    "partitions",
    "chunkRows",
)
"""The options of a read and a write that ``delete_where()`` takes."""


def delete_where(
    spark: SparkSession,
    table: str,
    filter: str | None,
    *,
    confirm: bool = False,
    transactional: bool = False,
    **options: Any,
) -> int:
    """Delete the rows of ``table`` for which ``filter``, in the filter language, is true now; return how many.

    Without a filter, ``confirm`` must be True: then all rows go. With ``transactional`` they go at one timestamp, or
    none does. Otherwise those that were deleted before a failure stay so, and the call may be repeated.

    Raises InvalidFilter with the position, InvalidArgument, NotFound; in the job, WriteConflict for a row that another
    writer has written meanwhile.
    """
    from cortado.errors import InvalidArgument
    from pyspark_cortado.clients import open_client
    from pyspark_cortado.defaults import with_defaults
    from pyspark_cortado.options import given_options, read_options

    given = {**with_defaults(spark, given_options(options, OPTIONS, "delete_where()")), "table": table}
    condition = None if filter is None or not filter.strip() else filter
    if condition is None and not confirm:
        raise InvalidArgument("confirm", f"must be True: without a filter all rows of {table} are deleted")
    with open_client(read_options(given).connection) as client:
        at = client.now()
        then = client.at(at)
        rows = then.table(table).count(filter=condition)
        key = list(dict.fromkeys(part.path.partition(".")[0] for part in then.describe(table).key))
    if not rows:
        return 0
    reader = spark.read.format("cortado").options(**given, at=str(at), columns=",".join(key))
    frame = (reader if condition is None else reader.option("filter", condition)).load()
    writer = frame.write.format("cortado").options(**given, operation="delete", unchangedSince=str(at))
    writer.option("transactional", str(transactional).lower()).mode("append").save()
    return rows
