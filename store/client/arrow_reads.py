"""Reads of one table as Arrow: batches of its rows or its changes, whole tables, data frames."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Unpack

from cortado.errors import InvalidArgument
from cortado.extras import needing
from cortado.schema.fields import select_fields
from cortado.schema.model import Schema
from cortado.store.client.arguments import texts, whole
from cortado.store.client.documents import D
from cortado.store.client.public_faces import public_face
from cortado.store.client.scans import ARROW_BATCH_ROWS, Scan, ScanOptions
from cortado.store.client.streams import opened
from cortado.store.client.table_reads import TableReads
from cortado.store.client.values import At, KeyLike
from cortado.store.client.watch import WatchOptions

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@public_face
class ArrowReads(TableReads[D]):
    """The reads of :class:`~cortado.store.client.table.AsyncTable` that are columns. They need pyarrow and numpy."""

    # --- rows ------------------------------------------------------------------------------------------------

    def scan_arrow(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        batch_rows: int = ARROW_BATCH_ROWS,
        **options: Unpack[ScanOptions],
    ) -> AsyncIterator[pa.RecordBatch]:
        """Yield the rows of :meth:`scan` as Arrow record batches of one schema. Needs pyarrow and numpy.

        Batches hold about ``batch_rows`` rows in key order, of the table's newest schema (or the handle's version), or
        of the fields that ``columns`` names, in that order. Old and new rows come alike. Raises NotFound for a field
        that the schema lacks, InvalidDocument for a stored row that the schema cannot read.
        """
        columns = options.pop("columns", None)
        scan = Scan(start, end, **options)
        return opened(lambda: self._open_arrow(scan, columns, batch_rows))

    async def _open_arrow(
        self, scan: Scan, columns: Sequence[str] | None, batch_rows: int
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Return the record batches of a scan."""
        from cortado.store.client.arrow import BATCH_ROWS_MAX, record_batches

        table = await self._kept(scan.at)
        whole(batch_rows, "batch_rows", 1, BATCH_ROWS_MAX)
        reader = await table._shown(columns)
        return record_batches(await table._open_batches(scan), reader, batch_rows)

    async def _shown(self, columns: Sequence[str] | None) -> Schema:
        """Return the schema of batches: the newest one's, which may have changed since this client looked."""
        await self.codec.refresh()
        schema = (await self.codec.schema())[1]
        return schema if columns is None else select_fields(schema, tuple(texts(columns, "columns")), self.full_name)

    async def to_arrow(self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[ScanOptions]) -> pa.Table:
        """Return the rows of :meth:`scan_arrow` as one Arrow table, all in memory. Without rows its schema is the
        same."""
        from cortado.store.client.arrow import record_batches, table_of_batches

        columns = options.pop("columns", None)
        scan = Scan(start, end, **options)
        table = await self._kept(scan.at)
        reader = await table._shown(columns)
        async with aclosing(record_batches(await table._open_batches(scan), reader, ARROW_BATCH_ROWS)) as batches:
            return table_of_batches([batch async for batch in batches], reader)

    async def to_pandas(
        self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[ScanOptions]
    ) -> pd.DataFrame:
        """Return the rows of :meth:`to_arrow` as a data frame of pandas, with Arrow types (``pandas.ArrowDtype``): a
        null stays null, and a long beside one stays whole. ``to_arrow().to_pandas()`` has numpy's types."""
        from cortado.store.client.pandas_frames import frame_of

        return frame_of(await self.to_arrow(start, end, **options))

    async def to_polars(
        self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[ScanOptions]
    ) -> pl.DataFrame:
        """Return the rows of :meth:`to_arrow` as a data frame of polars."""
        from cortado.store.client.polars_frames import frame_of

        return frame_of(await self.to_arrow(start, end, **options))

    # --- changes ---------------------------------------------------------------------------------------------

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
    ) -> AsyncIterator[pa.RecordBatch]:
        """Yield a range's changes ``after`` a timestamp and up to ``until``, in the order of the commits, as Arrow
        record batches of one schema, about ``batch_rows`` changes each. Needs pyarrow and numpy.

        The columns are the table's, of its newest schema (or the handle's version); ``_op``, "put" or "delete" (the
        key alone); ``_ts``; ``_commit_time``; and ``with_previous`` the replaced row, as ``_previous``. With
        ``initial_state`` the existing rows come first. Raises SnapshotTooOld, NotFound, InvalidArgument for a field
        of such a name.
        """
        options = WatchOptions(after, until, initial_state, with_previous)
        return opened(lambda: self._open_changes((start, end, None), options, batch_rows))

    async def _open_changes(
        self, bounds: tuple[KeyLike, KeyLike, KeyLike], options: WatchOptions, batch_rows: int
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Return the record batches of changes."""
        with needing("arrow", "Arrow"):
            from cortado.store.client.changes_arrow import PackedSource, PackedWatch, batches_of_changes

        for name in ("after", "until"):
            if getattr(options, name) is None:
                raise InvalidArgument(name, "must be given: a timestamp, its text, or a datetime with a time zone")
        self._connection.check_present("watching")
        began_with, codec = self._watched(options.after)
        await codec.refresh()
        source = PackedSource(self._name, bounds, began_with, codec)
        reader, key = (await codec.schema())[1], (await began_with()).key
        source.read_as(reader, key, codec, has_previous=options.with_previous)
        watch = PackedWatch(self._connection, source, options, timeout_s=self._timeout_s)
        return batches_of_changes(watch, batch_rows)
