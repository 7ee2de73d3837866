"""Tables of Spark's own catalogue: the columns and metadata that Spark keeps, and their use.

Spark's catalogue keeps the columns of a table ``USING cortado``, and hands a query's reader those and nothing else:
none of the options that the table was made with. But the columns that ``CREATE TABLE`` was not told it asks the source
for, and it keeps them with their metadata. So there the options are::

    CREATE TABLE flights USING cortado OPTIONS (…)    schema(): the table's columns, the options in their metadata
    SELECT … FROM flights                             reader(schema): a fresh one for each query, the options out of it

A write cannot go that way. Spark gives the written columns the metadata of the catalogue's only if it has to rename or
cast them; and ``INSERT INTO copies SELECT * FROM flights`` would hand over those of ``flights``. So a write goes where
its own options say: ``INSERT INTO flights WITH (…)``.

``saveAsTable()`` and ``CREATE TABLE … AS SELECT`` tell Spark the columns, so the source is not asked, and the table
that they leave in the catalogue can never be read. To ``writer()`` such a write looks like that of ``save()``. But it
runs within another execution of Spark's, that of the command which has made the table: so its tasks know, before they
store a row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark import TaskContext
from pyspark.sql.types import StructField, StructType

from cortado.errors import InvalidArgument, Unsupported

_MADE_WITH: Final = "cortado"
"""In the metadata of a column: the options of its table, as JSON."""

# How Spark describes a table that is to be made: each of its OPTIONS with this prefix, and properties of its own.
_OPTION: Final = "option."
_PROVIDER: Final = "provider"
_LOCATION: Final = "location"

_EXECUTION: Final = "spark.sql.execution.id"
_OUTERMOST: Final = "spark.sql.execution.root.id"
_STREAM: Final = "sql.streaming.queryId"


def is_new_table(options: Mapping[str, str]) -> bool:
    """Return whether ``schema()`` is asked for ``CREATE TABLE``."""
    return _PROVIDER in options


def options_of_new_table(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options in its ``OPTIONS``. Raises InvalidArgument for a LOCATION, and for a secret that would be
    kept."""
    if _LOCATION in options:
        problem = "must not be given: OPTIONS (table 'database.table') names the table"
        raise InvalidArgument("LOCATION", problem, options[_LOCATION])
    found = {name.removeprefix(_OPTION): value for name, value in options.items() if name.startswith(_OPTION)}
    if any(name.lower() == "token" for name in found):
        problem = "would be kept in Spark's catalogue, in sight of all users of the table: give tokenFile"
        raise InvalidArgument("option token", problem)
    return found


def keeping(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns, with the options that they are read with."""
    kept = {_MADE_WITH: json.dumps(dict(options))}
    return StructType([StructField(each.name, each.dataType, each.nullable, kept) for each in schema.fields])


def options_to_read(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a read, with those that its columns were kept with. The query's own options win."""
    kept = [each.metadata[_MADE_WITH] for each in schema.fields if _MADE_WITH in (each.metadata or {})]
    return {**(json.loads(kept[0]) if kept and "table" not in options else {}), **options}


def check_no_new_table() -> None:
    """Raises Unsupported in a task of ``saveAsTable()``, or of ``CREATE TABLE … AS SELECT``, that has made the table.

    Within a batch of a stream everything runs within another execution, and nothing can be told.
    """
    context = TaskContext.get()
    if context is None or context.getLocalProperty(_STREAM) is not None:
        return
    if context.getLocalProperty(_EXECUTION) != context.getLocalProperty(_OUTERMOST):
        instead = "use save(), and CREATE TABLE ... USING cortado OPTIONS (...) to read the table by a name of Spark's"
        raise Unsupported("saveAsTable() of a new table, or CREATE TABLE ... AS SELECT", instead)
