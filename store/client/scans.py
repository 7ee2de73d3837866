"""Arguments of a table's scan, checked as far as that needs no server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from cortado.errors import InvalidArgument
from cortado.proto.v1 import documents_pb2
from cortado.store.client.arguments import flag, optional_text, texts
from cortado.store.client.kv import check_limit
from cortado.store.client.values import At, Key, KeyLike, at_to_proto, key_from_proto, range_to_proto
from cortado.store.keys.types import KeyPart

ARROW_BATCH_ROWS: Final = 20_000


class ScanOptions(TypedDict, total=False):
    """Keyword arguments of a table's ``scan``, ``scan_batches`` and ``scan_arrow``, beside the bounds.

    - ``prefix``: every key that begins with these parts; the way to look something up by an index;
    - ``index``: the name of an index; the bounds and the prefix are of its key, and the rows in its order;
    - ``filter``: a condition in the filter grammar;
    - ``columns``: paths of the fields that are wanted, at least one; default: all;
    - ``limit``: the maximum number of rows;
    - ``reverse``: from the last key to the first;
    - ``at``: read the past: a Timestamp, its text, or a datetime with a time zone.
    """

    prefix: KeyLike
    index: str | None
    filter: str | None
    columns: Sequence[str] | None
    limit: int | None
    reverse: bool
    at: At


@dataclass(frozen=True, slots=True)
class Scan:
    """The arguments of :meth:`AsyncTable.scan`. Raises InvalidArgument."""

    start: KeyLike = None
    end: KeyLike = None
    prefix: KeyLike = None
    index: str | None = None
    filter: str | None = None
    columns: Sequence[str] | None = None
    limit: int | None = None
    reverse: bool = False
    at: At = None
    with_versions: bool = False

    def __post_init__(self) -> None:
        check_limit(self.limit)
        optional_text(self.index, "index")
        optional_text(self.filter, "filter")
        if self.columns is not None:
            object.__setattr__(self, "columns", texts(self.columns, "columns"))
            if not self.columns:
                raise InvalidArgument("columns", "must name a field or more; None is for all")
        flag(self.reverse, "reverse")
        flag(self.with_versions, "with_versions")
        at_to_proto(self.at)

    @property
    def is_empty(self) -> bool:
        """Nothing is asked for."""
        return self.limit == 0

    def to_proto(
        self, table: documents_pb2.TableName, parts: Sequence[KeyPart], schema_id: int
    ) -> documents_pb2.ScanRequest:
        """Return the request; ``parts`` are those of the key or index, ``schema_id`` that of the columns, 0 for all.
        Raises InvalidArgument for bounds that do not fit the parts."""
        return documents_pb2.ScanRequest(
            table=table,
            index=self.index or "",
            range=range_to_proto(self.start, self.end, self.prefix, parts),
            reverse=self.reverse,
            filter=self.filter or "",
            columns=self.columns or (),
            limit=check_limit(self.limit),
            at=at_to_proto(self.at),
            schema_id=schema_id,
            with_versions=self.with_versions,
        )


class AggregateOptions(TypedDict, total=False):
    """Keyword arguments of a table's ``aggregate`` and ``count``, beside the bounds.

    - ``prefix``: every key that begins with these parts;
    - ``index``: the name of an index; the bounds and the prefix are of its key;
    - ``filter``: a condition in the filter grammar;
    - ``at``: read the past: a Timestamp, its text, or a datetime with a time zone.
    """

    prefix: KeyLike
    index: str | None
    filter: str | None
    at: At


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The half-open range ``[start, end)`` of a table; None is open. ``rows`` is about how many it holds."""

    start: Key | None
    end: Key | None
    rows: int


def key_ranges(reply: documents_pb2.SplitResponse) -> list[KeyRange]:
    """Return the ranges of a split's reply."""
    return [
        KeyRange(
            key_from_proto(each.start) if each.HasField("start") else None,
            key_from_proto(each.end) if each.HasField("end") else None,
            rows,
        )
        for each, rows in zip(reply.ranges, reply.rows, strict=True)
    ]
