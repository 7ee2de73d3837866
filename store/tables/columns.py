"""Columns of stored rows, written with any schemas, as one reader's schema has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from cortado.errors import DataLoss, InvalidDocument
from cortado.schema.columnar.column import Column
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.resolve import resolve_columns, writer_columns
from cortado.schema.model import Schema
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.tables.building import BuildFailures, CannotBuild, is_building
from cortado.store.tables.rows import decode_payload, path_names
from cortado.store.tables.runs import Lengths, join_bodies, rows_by_schema, take_rows
from cortado.store.tables.view import TableView
from cortado.store.tables.walked import walked_columns


def decode_columns(
    view: TableView, payloads: Sequence[bytes], reader: Schema, paths: Collection[str] | None
) -> Iterator[tuple[Sequence[int], Mapping[str, Column]]]:
    """For each schema that wrote some of the rows: which, and their columns at ``paths`` (None: every field).

    A field that a writer lacks comes with the reader's default. Raises DataLoss for a body that does not decode.
    """
    for schema_id, rows in rows_by_schema(payloads).items():
        yield rows, decode_group(view, schema_id, take_rows(payloads, rows), reader, paths)


def decode_indexed(view: TableView, payload: bytes, row_key: LogicalKey, failures: BuildFailures) -> dict[str, Any]:
    """Return a stored row as far as its index entries need it; mostly all of it.

    A subject without compatibility rules may have a newest version that cannot read an old row. Its indexed fields can
    be read even so, because they are pinned: such a row can still be replaced and deleted. The fields of an index that
    is being built were not pinned when the row was written: if they cannot be read, that index goes into ``failures``.
    Raises DataLoss.
    """
    try:
        return view.decode(payload)
    except InvalidDocument:
        schema_id, _ = decode_payload(payload)
        document: dict[str, Any] = {}
        for index in failures.indexes(view):
            try:
                columns = decode_group(view, schema_id, [payload], view.newest, {part.path for part in index.parts})
            except InvalidDocument as misfit:
                if not is_building(index):
                    raise
                row = view.show_key(view.primary_key_of(row_key))
                failures.add(CannotBuild(view, index, misfit.message(), [row]))
                continue
            for path, column in columns.items():
                *parents, last = path_names(path)
                record = document
                for name in parents:
                    record = record.setdefault(name, {})
                record[last] = column.to_pylist()[0]
        return document


def decode_group(
    view: TableView, writer_id: int, payloads: Sequence[bytes], reader: Schema, paths: Collection[str] | None
) -> Mapping[str, Column]:
    """Decode rows that one schema wrote as :func:`decode_columns` does."""
    if isinstance(payloads, PackedPayloads):
        columns = walk_columns(payloads, view.stored_schema(writer_id), reader, paths)
        if columns is not None:
            return columns
    bodies, lengths = join_bodies(payloads)
    columns, errors = read_columns(bodies, lengths, view.stored_schema(writer_id), reader, paths)
    for error in errors.values():
        raise DataLoss(f"a row of table {view.table.full_name}", f"does not fit schema {writer_id}, its own: {error}")
    return columns


def walk_columns(
    payloads: PackedPayloads, writer: Schema, reader: Schema, paths: Collection[str] | None
) -> Mapping[str, Column] | None:
    """Read as :func:`read_columns` does, by the compiled walk; None if that cannot."""
    if _is_same(writer, reader):
        return walked_columns(payloads, writer, paths)
    found = walked_columns(payloads, writer, writer_columns(writer, reader, paths))
    return None if found is None else resolve_columns(found, writer, reader, paths)


def _is_same(writer: Schema, reader: Schema) -> bool:
    return writer is reader or writer.fingerprint == reader.fingerprint


def read_columns(
    bodies: bytes, lengths: Lengths, writer: Schema, reader: Schema, paths: Collection[str] | None
) -> tuple[Mapping[str, Column], Mapping[int, InvalidDocument]]:
    """Columns at the reader's ``paths``, and why rows did not decode (their places in the columns hold nothing)."""
    if _is_same(writer, reader):
        decoded = decode_rows(writer, bodies, lengths, columns=paths)
        return decoded.columns, decoded.errors
    # The writer may lack a field, or know it by another name.
    decoded = decode_rows(writer, bodies, lengths, columns=writer_columns(writer, reader, paths))
    return resolve_columns(decoded.columns, writer, reader, paths), decoded.errors
