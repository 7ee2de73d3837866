"""``lookup_join()``: a DataFrame joined with a table; the tasks read only rows with keys that occur.

::

    driver    one timestamp, one version of the schema; types, names and options are checked
    task      a batch of rows ── the keys in it, each once ── get_many at that timestamp ── joined, column by column

So a DataFrame of a thousand rows costs a thousand reads of a table of a billion. If most of the table's rows are
wanted, a join of two reads costs less: it passes each row once, and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from cortado.schema.model import Schema
    from cortado.store.client import Client, Document
    from cortado.store.client.blocking.table import Table
    from cortado.store.keys.types import KeyPart
    from pyspark_cortado.leases import Chosen
    from pyspark_cortado.options import Connection

OPTIONS: Final = (
    "endpoint",
    "timeoutSeconds",
    "tlsCa",
    "tlsCert",
    "tlsKey",
    "token",
    "tokenFile",
    "schemaVersion",
    "hold",
)
"""The options of a read that ``lookup_join()`` takes."""

ROWS: Final = 1_000
"""The rows of a DataFrame that are looked up at once: about as many keys as one request names."""


def lookup_join(
    df: DataFrame,
    table: str,
    keys: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    how: str = "inner",
    at: Any = None,
    **options: Any,
) -> DataFrame:
    """Return ``df`` joined with the rows of ``table`` (``database.table``) that have the primary keys in its columns
    ``keys``.

    ``keys`` names a column of ``df`` for each part of the key, in the key's order. The result has the columns of ``df``
    and, behind them, the fields ``columns`` of the table, by default all but those of the key. With ``how="inner"`` a
    row without a match is left out, with ``"left"`` its fields are null. A key with a null is never there. A key that
    occurs often is joined as often.

    All rows are read as of one timestamp, ``at`` or now. Raises, before there is a job, InvalidArgument for a column
    that is not there, of another type than the key, or called like a field; NotFound; Unsupported for a stream.
    """
    from cortado.errors import InvalidArgument, Unsupported
    from pyspark_cortado.clients import open_client
    from pyspark_cortado.defaults import with_defaults
    from pyspark_cortado.options import given_options, read_options
    from pyspark_cortado.reader import choose
    from pyspark_cortado.statements import time_text

    given = with_defaults(df.sparkSession, given_options(options, OPTIONS, "lookup_join()"))
    if how not in ("inner", "left"):
        raise InvalidArgument("how", "must be inner or left", str(how))
    if df.isStreaming:
        raise Unsupported("lookup_join() of a stream", "join each batch with foreachBatch, at its own time")
    if at is not None:
        given["at"] = time_text(at)
    asked = read_options({**given, "table": table})
    chosen = choose(asked)
    with open_client(asked.connection) as client:
        planned = _planned(client, table, chosen.at, chosen.version)
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    places = _key_places(df.schema, names, planned, table)
    fields = _fields(columns, planned, table)
    right = _right_columns(df.schema, fields, planned, table, is_left=how == "left")
    lookup = Lookup(asked.connection, chosen, planned.key, places, fields, right, is_left=how == "left")
    joined = lookup.schema_of(df.schema)
    return df.mapInArrow(lookup.join, joined)


@dataclass(frozen=True, slots=True)
class _Planned:
    """The table's key and its columns, at the time that is read."""

    key: tuple[KeyPart, ...]
    schema: Schema


def _planned(client: Client, table: str, at: str, version: int) -> _Planned:
    then = client.at(at)
    described = then.describe(table)
    found = client.schemas.get(described.subject, version)
    return _Planned(described.key, client.schemas.get_by_id(found.schema_id))


def _key_places(frame: StructType, names: Sequence[str], planned: _Planned, table: str) -> tuple[int, ...]:
    """Return the places of the key's parts in the DataFrame."""
    from cortado.errors import InvalidArgument
    from pyspark_cortado.types import widens

    paths = [part.path for part in planned.key]
    if len(names) != len(paths):
        problem = f"must name a column for each part of the key of {table}: {', '.join(paths)}"
        raise InvalidArgument("keys", problem, ", ".join(names) or "none")
    places = []
    for name, path in zip(names, paths, strict=True):
        alike = [place for place, each in enumerate(frame.names) if each.lower() == name.lower()]
        if len(alike) != 1:
            problem = f"must be a column of the DataFrame; there are {', '.join(frame.names)}"
            raise InvalidArgument(f"keys, {name}", "is the name of several columns" if alike else problem)
        found, own = frame.fields[alike[0]].dataType, _type_at(planned.schema, path, table)
        if not widens(found, own):
            problem = f"must be {own.simpleString()} as {path} in the key of {table}"
            raise InvalidArgument(f"keys, {name}", problem, found.simpleString())
        places += alike
    return tuple(places)


def _type_at(schema: Schema, path: str, table: str) -> DataType:
    """Spark's type of a part of the key, perhaps inside of records."""
    from pyspark_cortado.types import spark_schema

    first, *below = path.split(".")
    found: Any = spark_schema(schema, (first,), table)[first].dataType
    for name in below:
        found = found[name].dataType
    kind: DataType = found
    return kind


def _fields(columns: Sequence[str] | None, planned: _Planned, table: str) -> tuple[str, ...]:
    """Return the table's fields that are wanted. Raises NotFound, InvalidArgument."""
    from pyspark_cortado.types import field_names

    if columns is None:
        of_key = {part.path for part in planned.key}
        return tuple(each.name for each in planned.schema.record.fields if each.name not in of_key)
    return field_names([columns] if isinstance(columns, str) else columns, planned.schema, table)


def _right_columns(
    frame: StructType, fields: Sequence[str], planned: _Planned, table: str, *, is_left: bool
) -> StructType:
    """Return the columns of those fields, as they stand in the result."""
    from pyspark.sql.types import StructField, StructType

    from cortado.errors import InvalidArgument
    from pyspark_cortado.types import loosened_schema, spark_schema

    taken = {name.lower() for name in frame.names}
    for name in fields:
        if name.lower() in taken:
            problem = f"is a column of the DataFrame and a field of {table}: rename it, or say columns="
            raise InvalidArgument(f"column {name}", problem)
        taken.add(name.lower())
    if not fields:
        return StructType([])
    exact = spark_schema(planned.schema, fields, table)
    return loosened_schema(
        StructType([StructField(each.name, each.dataType, is_left or each.nullable) for each in exact.fields])
    )


@dataclass(frozen=True, slots=True)
class Lookup:
    """The work of the tasks, each on its part of the DataFrame."""

    connection: Connection
    chosen: Chosen
    key: tuple[KeyPart, ...]
    places: tuple[int, ...]
    fields: tuple[str, ...]
    right: StructType
    is_left: bool

    def schema_of(self, frame: StructType) -> StructType:
        """Return the columns of the result."""
        from pyspark.sql.types import StructType

        return StructType([*frame.fields, *self.right.fields])

    def join(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each batch with the rows that it finds."""
        from pyspark_cortado.clients import open_client
        from pyspark_cortado.leases import held

        name, chosen = self.connection.table, self.chosen
        with open_client(self.connection) as client, held(client, name, chosen.lease):
            table = client.at(chosen.at).table(name, schema_version=chosen.version)
            for batch in batches:
                for first in range(0, batch.num_rows, ROWS):
                    yield self._joined(table, batch.slice(first, ROWS))

    def _joined(self, table: Table[Any], batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        rows = self._keys(batch)
        wanted = list(dict.fromkeys(row for row in rows if row is not None))
        found = dict(zip(wanted, table.get_many(wanted) if wanted else [], strict=True))
        present = [(key, document) for key, document in found.items() if document is not None]
        places = {key: place for place, (key, _) in enumerate(present)}
        at = pa.array([None if row is None else places.get(row) for row in rows], pa.int64())
        if not self.is_left:
            batch, at = batch.filter(at.is_valid()), at.drop_null()
        columns = [] if not self.fields else self._columns(table, [document for _, document in present])
        arrays = [*batch.columns, *(column.take(at) for column in columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*batch.schema, *self._target()]))

    def _keys(self, batch: pa.RecordBatch) -> list[tuple[Any, ...] | None]:
        """Return the key in each row; None if a part of it is null, or cannot be a part of a key."""
        columns = [_parts(batch.column(place), part.type) for place, part in zip(self.places, self.key, strict=True)]
        return [None if any(part is None for part in row) else row for row in zip(*columns, strict=True)]

    def _target(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self.right, timezone="UTC")

    def _columns(self, table: Table[Any], documents: Iterable[Document]) -> list[pa.Array]:
        """Return the fields of these documents."""
        from cortado.schema.fields import select_fields
        from cortado.store.client.arrow import table_of

        schema = select_fields(table.codec.schema()[1], self.fields, self.connection.table)
        rows = [[document.value[name] for name in self.fields] for document in documents]
        target = self._target()
        made = table_of(schema, rows, range(len(self.fields)), target.names).cast(target)
        return [column.combine_chunks() for column in made.columns]


def _parts(column: pa.Array, kind: Any) -> list[Any]:
    """Return a column's values as parts of a key."""
    import pyarrow as pa

    from cortado.store.keys.types import KeyType

    if pa.types.is_timestamp(column.type):
        # Microseconds, as Spark has them: years beyond those of Python's datetime, too.
        column = column.cast(pa.int64())
    values = column.to_pylist()
    return [_uuid(value) for value in values] if kind is KeyType.UUID else values


def _uuid(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
