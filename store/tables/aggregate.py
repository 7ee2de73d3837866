"""Aggregates of a key range: a scan with slices that become groups instead of rows.

::

    slice -> payloads -> columns of each writer's rows -> those that pass the filter -> groups of the slice
                                                                      (aggregate_slices.py) |
    reply <- encoded <-- when they are many, after a second, or at the end <-- groups so far

The fields of the filter and of the aggregates are decoded once, together. A reply holds the groups of the rows since
the last one, and the token of the place up to which they were read: so a broken stream goes on there, and no row counts
twice. Groups that were not sent then are lost, and worked out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cortado.store.aggregate.bind import Aggregate, Aggregation, bind_aggregates
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.paging import PageToken, request_shape
from cortado.store.tables.runs import Lengths
from cortado.store.tables.scan import Scan, ScanPlan, plan_scan


@dataclass(frozen=True, slots=True)
class AggregateScan:
    """The aggregation: the rows of ``scan``, whose bounds, filter and schema count."""

    scan: Scan
    group_by: Sequence[str]
    aggregates: Sequence[Aggregate]

    def shape(self) -> bytes:
        """Return the shape of the request, to which a page token is bound."""
        return request_shape(
            "aggregate", self.scan.shape(), len(self.group_by), *self.group_by, *map(str, self.aggregates)
        )


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """Aggregates that have been checked against the catalogue, and can be stepped. ``paths`` are the fields read."""

    scan: ScanPlan
    aggregation: Aggregation
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AggregatePage:
    """Avro ``bodies`` of groups end to end, and the next state: None at the end."""

    bodies: bytes
    lengths: Lengths = field(repr=False)
    next: PageToken | None


def plan_aggregate(catalog: Catalog, asked: AggregateScan, read_ts: Timestamp) -> AggregatePlan:
    """Check it. Raises NotFound (database, table, index, schema), InvalidArgument, InvalidFilter, TooLarge."""
    scan = plan_scan(catalog, asked.scan, read_ts)
    reader, table_name = scan.conversion.reader_schema, scan.view.table.full_name
    aggregation = bind_aggregates(reader, asked.group_by, asked.aggregates, table_name)
    filtered = () if scan.filter is None else scan.filter.paths
    return AggregatePlan(scan, aggregation, tuple(dict.fromkeys((*aggregation.paths, *filtered))))
