"""One table in the hands of an application, synchronous."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Unpack, overload

from cortado.errors import CortadoError
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.aggregates import GROUPS_MAX, Groups
from cortado.store.client.blocking.documents import DocumentCodec
from cortado.store.client.blocking.drive import each, run, steps
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.blocking.watch import Watch
from cortado.store.client.bulk import BulkResult
from cortado.store.client.document_types import to_mapping
from cortado.store.client.documents import D, Document, RowBatch
from cortado.store.client.notebook import ROWS_MAX, WAIT_S, grid, table_grid
from cortado.store.client.put_mode import BulkMode, PutMode
from cortado.store.client.scans import ARROW_BATCH_ROWS, AggregateOptions, KeyRange, Scan, ScanOptions
from cortado.store.client.streams import ArrowStream
from cortado.store.client.table import AsyncTable
from cortado.store.client.values import At, Expires, Key, KeyLike
from cortado.store.client.watch import WatchOptions
from cortado.store.client.windows import ChangeWindow
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@forwards(AsyncTable)
class Table(Generic[D]):
    """A table. Made by ``client.table("database.table")``; holds no state but caches, and may be shared by threads.

    Keys are a tuple of parts, or a single value if the key has one part. ``at`` reads in the past: a
    :class:`Timestamp`, its text, or a ``datetime`` with a time zone.

    The table of a transaction is this, too. Its writes wait for the commit, and return None.

    :class:`AsyncTable` documents each method under the same name; ``help`` shows that text here, too.
    """

    def __init__(self, core: AsyncTable[D]) -> None:
        self._core = core
        self.full_name = core.full_name

    def __repr__(self) -> str:
        return repr(self._core).removeprefix("Async")

    def _repr_html_(self) -> str | None:
        """Return HTML for notebooks: its key, its indexes and its first rows, read now. If the cluster does not answer,
        it waits for some seconds at most. None in a transaction, which only its own reads should begin."""
        return run(_html_of(self._core))

    @property
    def descriptor(self) -> TableDescriptor:
        return run(self._core.descriptor())

    @property
    def codec(self) -> DocumentCodec:
        return DocumentCodec(self._core.codec)

    # --- by key ----------------------------------------------------------------------------------------------

    def get(self, key: KeyLike, *, at: At = None, validate: bool = False) -> Document[D] | None:
        return run(self._core.get(key, at=at, validate=validate))

    def get_many(self, keys: Sequence[KeyLike], *, at: At = None) -> list[Document[D] | None]:
        return run(self._core.get_many(keys, at=at))

    @overload
    def put(
        self: Table,
        document: Mapping[str, Any],
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        expires: Expires = None,
    ) -> str: ...

    @overload
    def put(
        self,
        document: D,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        expires: Expires = None,
    ) -> str: ...

    def put(
        self,
        document: Any,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        expires: Expires = None,
    ) -> str:
        return run(
            self._core.put(document, if_absent=if_absent, if_present=if_present, if_etag=if_etag, expires=expires)
        )

    def update(
        self, key: KeyLike, changes: Mapping[str, Any], *, if_etag: str | None = None, expires: Expires = None
    ) -> Document[D]:
        return run(self._core.update(key, changes, if_etag=if_etag, expires=expires))

    def delete(self, key: KeyLike, *, if_etag: str | None = None) -> bool:
        return run(self._core.delete(key, if_etag=if_etag))

    def add(self, key: KeyLike, field: str, delta: int, *, min: int | None = None, max: int | None = None) -> int:
        return run(self._core.add(key, field, delta, min=min, max=max))

    def require(
        self, key: KeyLike, *, if_absent: bool = False, if_present: bool = False, if_etag: str | None = None
    ) -> None:
        run(self._core.require(key, if_absent=if_absent, if_present=if_present, if_etag=if_etag))

    # --- in ranges -------------------------------------------------------------------------------------------

    def scan(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        **options: Unpack[ScanOptions],
    ) -> Iterator[Document[D]]:
        scan = Scan(start, end, **options, with_versions=True)
        return each(run(self._core._open_scan(scan)))

    def scan_batches(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        with_versions: bool = False,
        **options: Unpack[ScanOptions],
    ) -> Iterator[RowBatch]:
        scan = Scan(start, end, **options, with_versions=with_versions)
        return steps(run(self._core._open_batches(scan)))

    def aggregate(
        self,
        aggregates: str,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        group_by: str | Sequence[str] | None = None,
        **options: Unpack[AggregateOptions],
    ) -> list[dict[str, Any]]:
        return run(self._core.aggregate(aggregates, start, end, group_by=group_by, **options))

    def aggregate_arrow(
        self,
        aggregates: str,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        group_by: str | Sequence[str] | None = None,
        **options: Unpack[AggregateOptions],
    ) -> pa.Table:
        return run(self._core.aggregate_arrow(aggregates, start, end, group_by=group_by, **options))

    def count(self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[AggregateOptions]) -> int:
        return run(self._core.count(start, end, **options))

    def aggregate_groups(
        self,
        aggregates: str,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        group_by: str | Sequence[str] | None = None,
        groups_max: int = GROUPS_MAX,
        **options: Unpack[AggregateOptions],
    ) -> Groups:
        core = self._core
        return run(core.aggregate_groups(aggregates, start, end, group_by=group_by, groups_max=groups_max, **options))

    def watch(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        prefix: KeyLike = None,
        after: At = None,
        until: At = None,
        initial_state: bool = False,
        with_previous: bool = False,
        resolved_ms: int = 1_000,
    ) -> Watch[Key, Document[D]]:
        core = self._core.watch(
            start,
            end,
            prefix=prefix,
            after=after,
            until=until,
            initial_state=initial_state,
            with_previous=with_previous,
            resolved_ms=resolved_ms,
        )
        return Watch(core)

    def progress(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        prefix: KeyLike = None,
        after: At = None,
        until: At = None,
        resolved_ms: int = 1_000,
    ) -> Watch[Key, Document[D]]:
        core = self._core
        return Watch(core.progress(start, end, prefix=prefix, after=after, until=until, resolved_ms=resolved_ms))

    def changes_arrow(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        after: At,
        until: At,
        initial_state: bool = False,
        with_previous: bool = False,
        batch_rows: int = ARROW_BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        options = WatchOptions(after, until, initial_state, with_previous)
        return steps(run(self._core._open_changes((start, end, None), options, batch_rows)))

    def window(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        after: At,
        until: At = None,
        changes_max: int | None = None,
        bytes_max: int | None = None,
        parts: int = 1,
    ) -> ChangeWindow[Key]:
        bounds = {"changes_max": changes_max, "bytes_max": bytes_max}
        return run(self._core.window(start, end, after=after, until=until, parts=parts, **bounds))

    def split(
        self,
        parts: int,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        part_bytes: int | None = None,
        at: At = None,
    ) -> tuple[Timestamp, list[KeyRange]]:
        return run(self._core.split(parts, start, end, part_bytes=part_bytes, at=at))

    # --- in bulk ---------------------------------------------------------------------------------------------

    @overload
    def put_many(
        self: Table,
        documents: Iterable[Mapping[str, Any]],
        *,
        mode: PutMode = "upsert",
        parse: bool = False,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult: ...

    @overload
    def put_many(
        self,
        documents: Iterable[D],
        *,
        mode: PutMode = "upsert",
        parse: bool = False,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult: ...

    def put_many(
        self,
        documents: Iterable[Any],
        *,
        mode: PutMode = "upsert",
        parse: bool = False,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        return run(
            self._core.put_many(
                documents,
                mode=mode,
                parse=parse,
                chunk_rows=chunk_rows,
                unchanged_since=unchanged_since,
                expires=expires,
                progress=progress,
            )
        )

    def put_json(
        self,
        values: Iterable[Any],
        *,
        mode: PutMode = "upsert",
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        return run(
            self._core.put_json(
                values,
                mode=mode,
                chunk_rows=chunk_rows,
                unchanged_since=unchanged_since,
                expires=expires,
                progress=progress,
            )
        )

    def put_batches(
        self,
        batches: Iterable[tuple[int, bytes, bytes] | RowBatch],
        *,
        mode: PutMode = "upsert",
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        core = self._core
        loading = core.put_batches(
            batches, mode=mode, unchanged_since=unchanged_since, expires=expires, progress=progress
        )
        return run(loading)

    def update_many(
        self,
        documents: Iterable[Mapping[str, Any]],
        columns: Sequence[str],
        *,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        return run(
            self._core.update_many(
                documents,
                columns,
                chunk_rows=chunk_rows,
                unchanged_since=unchanged_since,
                expires=expires,
                progress=progress,
            )
        )

    def delete_many(
        self,
        keys: Iterable[KeyLike],
        *,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        core = self._core
        return run(core.delete_many(keys, chunk_rows=chunk_rows, unchanged_since=unchanged_since, progress=progress))

    # --- as Arrow --------------------------------------------------------------------------------------------

    def scan_arrow(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        batch_rows: int = ARROW_BATCH_ROWS,
        **options: Unpack[ScanOptions],
    ) -> Iterator[pa.RecordBatch]:
        columns = options.pop("columns", None)
        scan = Scan(start, end, **options)
        return steps(run(self._core._open_arrow(scan, columns, batch_rows)))

    def to_arrow(self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[ScanOptions]) -> pa.Table:
        return run(self._core.to_arrow(start, end, **options))

    def to_pandas(self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[ScanOptions]) -> pd.DataFrame:
        return run(self._core.to_pandas(start, end, **options))

    def to_polars(self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[ScanOptions]) -> pl.DataFrame:
        return run(self._core.to_polars(start, end, **options))

    def put_arrow(
        self,
        batches: Iterable[pa.RecordBatch] | pa.RecordBatch | ArrowStream,
        *,
        mode: BulkMode = "upsert",
        columns: Sequence[str] | None = None,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        return run(
            self._core.put_arrow(
                batches,
                mode=mode,
                columns=columns,
                chunk_rows=chunk_rows,
                unchanged_since=unchanged_since,
                expires=expires,
                progress=progress,
            )
        )


async def _html_of(table: AsyncTable[Any]) -> str | None:
    """Return a table's key, indexes and first rows, or the error that reading them raised. None in a transaction."""
    try:
        sample = await table._open_sample(ROWS_MAX, WAIT_S)
        if sample is None:
            return None
        descriptor, documents, has_more = sample
        rows = [to_mapping(each.value, each.schema) for each in documents]
    except CortadoError as error:
        return grid(table.full_name, (), (), f"{type(error).__name__}: {error}")
    columns = [field.name for field in documents[0].schema.record.fields] if documents else []
    return table_grid(table.full_name, descriptor, columns, rows, has_more=has_more)
