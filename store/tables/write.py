"""One document written, changed or deleted: from an operation to an evaluation.

Each function here is the body of a command: it reads through the reader, refuses by raising, and returns the changes.
There is one way from a document to its row and its index entries, for these and for transactions of many operations
(:mod:`cortado.store.transactions`)::

    Put, Update, Delete  ->  RowStage: a change of the row (old and new document)  ->  Mutations (row, index entries)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.transacting import Origin
from cortado.store.tables.operations import Delete, Deleted, DocumentInput, Put, Update, Updated, Written
from cortado.store.tables.prepared import PreparedDocument, prepare_each
from cortado.store.tables.rows import StoredRow, decode_payload
from cortado.store.tables.stage import RowStage, read_input
from cortado.store.tables.view import TableView


def prepare_documents(
    catalog: Catalog, documents: Sequence[tuple[str, str, DocumentInput]]
) -> Iterator[PreparedDocument | None]:
    """Read documents (of a database and table) one by one, before their puts are evaluated with the results."""
    return prepare_each(catalog, documents, read_input)


def evaluate_put(
    reader: Reader, commit_ts: Timestamp, catalog: Catalog, put: Put, prepared: PreparedDocument | None = None
) -> Evaluation:
    """Reply: :class:`Written`. ``prepared`` saves reading the document.

    Raises NotFound (database, table, schema), InvalidDocument, TooLarge, KeyTooLong, ConditionFailed, UniqueViolation.
    """
    stage = RowStage(Origin(reader))
    stage.put(TableView(catalog, put.database, put.table), put, prepared=prepared)
    return Evaluation(stage.mutations(), Written(commit_ts))


def evaluate_update(reader: Reader, commit_ts: Timestamp, catalog: Catalog, update: Update) -> Evaluation:
    """Reply: :class:`Updated`. Raises as :func:`evaluate_put`, and NotFound if there is no such document."""
    stage = RowStage(Origin(reader))
    change = stage.update(TableView(catalog, update.database, update.table), update)
    assert change.payload is not None
    schema_id, body = decode_payload(change.payload)
    return Evaluation(stage.mutations(), Updated(StoredRow(schema_id, body, commit_ts, change.expires_ms)))


def evaluate_delete(reader: Reader, commit_ts: Timestamp, catalog: Catalog, delete: Delete) -> Evaluation:
    """Reply: :class:`Deleted`. Raises NotFound (database, table), InvalidArgument, ConditionFailed."""
    stage = RowStage(Origin(reader))
    existed = stage.delete(TableView(catalog, delete.database, delete.table), delete)
    return Evaluation(stage.mutations(), Deleted(commit_ts, existed=existed))
