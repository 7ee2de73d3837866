"""Converts stored rows to the rows that a scan returns: as written, through one schema, projected, as JSON.

Rows that need no change are never decoded. The others go through columns, all rows of one writer at a time::

    as written      payloads ------------------------------------------> runs, one for each change of schema
    one schema      payloads -> columns -> resolved ------> encoded ---> one run
    projected       payloads -> columns -> resolved, pruned -> encoded -> one run, of a schema that has no id
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

import numpy as np

from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.json_format import to_json_value
from cortado.schema.json_text import json_text
from cortado.schema.limits import READ_BYTES_MAX
from cortado.schema.model import Schema
from cortado.store.tables.columns import decode_group
from cortado.store.tables.projection import Projection, project
from cortado.store.tables.runs import PROJECTED, Lengths, Run, join_bodies, rows_by_schema, split_runs, take_rows
from cortado.store.tables.view import TableView


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a scan's rows are returned. ``schema_id`` 0 leaves rows as they were written, unless they are projected.

    ``reader_schema`` is what paths in filters and projections mean.
    """

    view: TableView
    reader_schema: Schema
    schema_id: int
    projection: Projection | None
    json: bool

    @property
    def projected_schema(self) -> str:
        return "" if self.projection is None else self.projection.schema.text

    def runs(self, payloads: Sequence[bytes], versions: bytes = b"") -> list[Run]:
        """Runs of these rows, in their order. Raises DataLoss for a stored row that does not decode."""
        if not payloads:
            return []
        if self.projection is None and self.schema_id == 0:
            return split_runs(payloads, versions)
        groups = rows_by_schema(payloads)
        if self.projection is None and set(groups) == {self.schema_id}:
            return split_runs(payloads, versions)
        parts = [self._convert(schema_id, take_rows(payloads, rows)) for schema_id, rows in groups.items()]
        target = PROJECTED if self.projection is not None else self.schema_id
        if len(parts) == 1:
            return [Run(target, *parts[0], versions)]
        bodies: list[bytes] = [b""] * len(payloads)
        lengths = np.zeros(len(payloads), dtype=np.uint32)
        for rows, (joined, part_lengths) in zip(groups.values(), parts, strict=True):
            lengths[rows] = part_lengths
            for row, body in zip(rows, cut(joined, part_lengths), strict=True):
                bodies[row] = body
        return [Run(target, b"".join(bodies), lengths, versions)]

    def json_rows(self, runs: Sequence[Run], bytes_max: int) -> tuple[list[str], int]:
        """Return the first rows of runs that this conversion made, as JSON texts, and their bytes: more than one row
        only as long as they fit."""
        schema = self.reader_schema if self.projection is None else self.projection.schema
        texts: list[str] = []
        size_bytes = 0
        for text in chain.from_iterable(_json_rows(schema, run) for run in runs):
            text_bytes = len(text) if text.isascii() else len(text.encode())
            if texts and size_bytes + text_bytes > bytes_max:
                break
            texts.append(text)
            size_bytes += text_bytes
        return texts, size_bytes

    def _convert(self, writer_id: int, payloads: Sequence[bytes]) -> tuple[bytes, Lengths]:
        """Convert rows of one writer to the target schema."""
        if self.projection is None and writer_id == self.schema_id:
            return join_bodies(payloads)
        paths = None if self.projection is None else self.projection.fields
        columns = decode_group(self.view, writer_id, payloads, self.reader_schema, paths)
        if self.projection is None:
            return encode_rows(self.reader_schema, columns, len(payloads), bytes_max=READ_BYTES_MAX)
        pruned = self.projection.prune(columns)
        return encode_rows(self.projection.schema, pruned, len(payloads), bytes_max=READ_BYTES_MAX)


def plan_conversion(view: TableView, schema_id: int, columns: Sequence[str], *, json: bool) -> Conversion:
    """Raises NotFound (schema, field), InvalidArgument."""
    reader_id = schema_id or view.newest_id
    reader_schema = view.writer(reader_id)
    projection = project(reader_schema, columns, view.table.full_name) if columns else None
    # A JSON row does not say which schema wrote it, so all are read through one.
    return Conversion(view, reader_schema, reader_id if json else schema_id, projection, json)


def cut(joined: bytes, lengths: Lengths) -> list[bytes]:
    """Return each of the bodies that were joined."""
    ends = list(accumulate(lengths.tolist(), initial=0))
    return [joined[start:end] for start, end in pairwise(ends)]


def _json_rows(schema: Schema, run: Run) -> Iterator[str]:
    columns = decode_rows(schema, run.bodies, run.lengths).columns
    names = list(columns)
    values = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    documents = (dict(zip(names, row, strict=True)) for row in values)
    return (json_text(to_json_value(schema, document)) for document in documents)
