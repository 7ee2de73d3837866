"""A batch read: key ranges of about equal size, all read at one timestamp, as Arrow.

::

    driver    load() ── the cluster's timestamp, then the newest version of the subject, as Spark types
                     ── the filter, held against that version: an error is known before the job
              partitions() ── at the first action: the cluster cuts the key range ───────┐
    executor  read(partition) ── rows of one range, as Avro, each run of one version  <──┘
                              ── the node has filtered them, and ends at the limit
                              ── decoded by column, resolved to the reader's version ── record batches

``load()`` chooses timestamp and version together: before the first action rows may change, and rows of versions may be
written that the DataFrame's columns cannot show. The timestamp comes first: no row at it is of a later version than the
newest one afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument
from cortado.schema.model import Schema
from cortado.store.client import Client
from cortado.store.client.values import parse_at
from cortado.store.filter.bind import compile_filter
from pyspark_cortado.aggregates import AggregateReader, aggregate_schema
from pyspark_cortado.clients import open_client, open_reader, turns_of
from pyspark_cortado.keys import KeyRangePartition, ranges_of, read_bounds
from pyspark_cortado.leases import Chosen, held, protect
from pyspark_cortado.options import ReadOptions
from pyspark_cortado.types import check_columns, field_names, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RowsPartition(KeyRangePartition):
    """The same rows, and the members ``endpoint`` that the task asks for them."""

    endpoint: str


def choose(options: ReadOptions) -> Chosen:
    """Choose the state that a read sees from now on. Raises InvalidArgument, NotFound, Unavailable."""
    with open_client(options.connection) as client:
        return _choose(client, options)


def table_schema(options: ReadOptions) -> tuple[StructType, Chosen]:
    """Return the table's columns, or those that the options name, as Spark types; and the choice made with them."""
    table = options.connection.table
    with open_client(options.connection) as client:
        chosen = _choose(client, options)
        _check(client, options, chosen)
        schema = _reading_schema(client, table, chosen)
    if options.aggregate is not None:
        return aggregate_schema(options, schema), chosen
    named = None if options.columns is None else field_names(options.columns, schema, table)
    return spark_schema(schema, named, table), chosen


def _choose(client: Client, options: ReadOptions) -> Chosen:
    if options.at is not None:
        parse_at(options.at)
    at, table = options.at or str(client.now()), options.connection.table
    then = client.at(at)
    subject = then.describe(table).subject
    lease = protect(client, table, at) if options.hold else None
    if lease is None:
        # An error for collected versions is raised before the job.
        for _ in then.table(table).scan(limit=1):
            pass
    return Chosen(at, client.schemas.get(subject, options.schema_version).version, lease)


def _reading_schema(client: Client, table: str, chosen: Chosen) -> Schema:
    """Return the version of the table's subject that the job reads with."""
    found = client.schemas.get(client.at(chosen.at).describe(table).subject, chosen.version)
    return client.schemas.get_by_id(found.schema_id)


def _check(client: Client, options: ReadOptions, chosen: Chosen) -> None:
    """Raise the node's later refusal of a filter or an index now. Raises InvalidFilter with the position and the token
    that was expected there, InvalidArgument for bounds that do not fit the key or index, NotFound."""
    table = options.connection.table
    then = client.at(chosen.at)
    if options.filter is not None:
        # The node filters in the newest version, also if rows are read with another.
        newest = client.schemas.get(then.describe(table).subject)
        compile_filter(options.filter, client.schemas.get_by_id(newest.schema_id))
    read_bounds(then, options)


def prepare_read(options: ReadOptions, schema: StructType, chosen: Chosen) -> TableReader | AggregateReader:
    """Return a reader of the columns in ``schema``. Raises NotFound, InvalidArgument if they are not the table's."""
    if not schema.fields:
        # Spark would count no rows if it is given no columns.
        raise InvalidArgument("schema", "must name at least one column")
    table = options.connection.table
    with open_client(options.connection) as client:
        _check(client, options, chosen)
        own = _reading_schema(client, table, chosen)
    if options.aggregate is not None:
        found = aggregate_schema(options, own)
        if schema.simpleString() != found.simpleString():
            raise InvalidArgument("schema", f"must be {found.simpleString()}", schema.simpleString())
        return AggregateReader(options, found, chosen)
    fields = field_names(schema.names, own, table)
    check_columns(schema, spark_schema(own, fields, table), table)
    return TableReader(options, schema, fields, chosen)


class TableReader(DataSourceReader):
    """Reads the columns in ``schema``, which are the table's ``fields``, some or all of them."""

    def __init__(self, options: ReadOptions, schema: StructType, fields: Sequence[str], chosen: Chosen) -> None:
        self._options = options
        self._schema = schema
        self._fields = fields
        self._chosen = chosen

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges that hold about equally many rows, or the one range that cannot be cut."""
        options, chosen = self._options, self._chosen
        with open_client(options.connection) as client, held(client, options.connection.table, chosen.lease):
            ranges = ranges_of(client.at(chosen.at), options)
            turns = turns_of(client, options)
        return [RowsPartition(*bounds, turns[place % len(turns)]) for place, bounds in enumerate(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Record batches that match the schema to the letter."""
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, RowsPartition)
        options, name = self._options, self._options.connection.table
        target = to_arrow_schema(self._schema, timezone="UTC")
        with open_reader(options, partition.endpoint) as client, held(client, name, self._chosen.lease):
            table = client.at(self._chosen.at).table(name, schema_version=self._chosen.version)
            rows = table.scan_arrow(
                partition.lower,
                partition.upper,
                columns=self._fields,
                index=options.index,
                filter=options.filter,
                limit=options.limit,
            )
            for batch in rows:
                # They differ in the case of letters, and where Spark's schema alone says "may be null".
                named = batch.rename_columns(target.names)
                yield named if named.schema.equals(target) else named.cast(target)
