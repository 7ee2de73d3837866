"""A read of aggregates: the node computes them by range, and one task merges the ranges' groups.

::

    driver    load() ── timestamp and version; what the result's columns are, without a row being read
    task      k ranges, asked at once ── groups of each, from the node ── merged, finished ── one record batch

There is one partition, and its rows are final: so every operation that Spark stacks on the DataFrame is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructField, StructType

from cortado.errors import InvalidArgument
from cortado.schema.model import Schema
from cortado.store.aggregate.bind import Aggregate, Kind, bind_aggregates
from cortado.store.client.aggregate_text import AggregateQuery, parse_aggregates
from pyspark_cortado.clients import open_client, open_reader, turns_of
from pyspark_cortado.keys import ranges_of
from pyspark_cortado.leases import Chosen, held
from pyspark_cortado.options import ReadOptions
from pyspark_cortado.types import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import Client

_AT_ONCE = 8
"""Ranges that one task asks about at a time: a node has no more cores for it, and each is a stream."""
_OPTIONS = {"aggregates": "option aggregate", "group_by": "option groupBy"}


def aggregate_schema(options: ReadOptions, schema: Schema) -> StructType:
    """Return the columns of the result, for a table with that ``schema``. Raises InvalidArgument with the position of a
    parse error, or the field and the type that does not fit; TooLarge."""
    assert options.aggregate is not None
    try:
        query = parse_aggregates(options.aggregate, options.group_by)
        asked = list(dict.fromkeys((each.kind, each.field) for each in query.aggregates))
        bound = bind_aggregates(
            schema,
            [each.field for each in query.group_by],
            [Aggregate(Kind(kind), field) for kind, field in asked],
            options.connection.table,
        )
    except InvalidArgument as error:
        name = error.field.partition("[")[0]
        raise InvalidArgument(_OPTIONS.get(name, error.field), error.problem, error.value) from None
    found = spark_schema(bound.result_schema, None, options.connection.table).fields
    places = _places(query, asked)
    return StructType(
        [
            StructField(name, found[place].dataType, found[place].nullable)
            for place, name in zip(places, query.names, strict=True)
        ]
    )


def _places(query: AggregateQuery, asked: Sequence[tuple[Any, str]]) -> list[int]:
    """Return the place of each column among groups and aggregates; each of those is computed once."""
    width = len(query.group_by)
    return [*range(width), *(width + asked.index((each.kind, each.field)) for each in query.aggregates)]


@dataclass
class RangesPartition(InputPartition):
    """All ranges ``[lower, upper)``, None is an open end; and which members to ask."""

    ranges: list[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]]
    endpoint: str


class AggregateReader(DataSourceReader):
    """Reads the groups of the table, as ``chosen`` shows its rows."""

    def __init__(self, options: ReadOptions, schema: StructType, chosen: Chosen) -> None:
        self._options = options
        self._schema = schema
        self._chosen = chosen

    def partitions(self) -> Sequence[InputPartition]:
        """One, with all ranges."""
        options, chosen = self._options, self._chosen
        with open_client(options.connection) as client, held(client, options.connection.table, chosen.lease):
            ranges = ranges_of(client.at(chosen.at), options)
            return [RangesPartition(ranges, turns_of(client, options)[0])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the finished groups, in their order."""
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, RangesPartition)
        options = self._options
        with (
            open_reader(options, partition.endpoint) as client,
            held(client, options.connection.table, self._chosen.lease),
        ):
            found = self._merged(client, partition).slice(0, self._options.limit)
        target = to_arrow_schema(self._schema, timezone="UTC")
        yield from found.rename_columns(target.names).cast(target).to_batches()

    def _merged(self, client: Client, partition: RangesPartition) -> pa.Table:
        options = self._options
        assert options.aggregate is not None
        chosen = self._chosen
        table = client.at(chosen.at).table(options.connection.table, schema_version=chosen.version)

        def groups_of(bounds: tuple[Any, Any]) -> Any:
            return table.aggregate_groups(
                options.aggregate or "", *bounds, group_by=options.group_by, index=options.index, filter=options.filter
            )

        with ThreadPoolExecutor(min(_AT_ONCE, len(partition.ranges))) as pool:
            first, *others = pool.map(groups_of, partition.ranges)
        for each in others:
            first.merge(each)
        merged: pa.Table = first.arrow()
        return merged
