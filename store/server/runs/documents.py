"""Runs of documents: ``Documents.Put`` and ``Documents.Get``.

A put is plain in a table without indexes. The run reads its documents before it stands in line. An invalid document
leaves the run, and so does every document of a table with an index. If the table or its newest schema has changed by
the time of the evaluation, the run reads them again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from cortado.errors import CortadoError
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.versions import NO_EXPIRIES
from cortado.store.replica.replica import Replica
from cortado.store.replica.write.run import EvaluateRun, RunEffects
from cortado.store.server.convert import key_values
from cortado.store.server.document_messages import document_input
from cortado.store.server.runs.gathering import CallRun, PlainCall
from cortado.store.server.runs.reading import PlainReads
from cortado.store.server.runs.wire import document_reply, headed, put_etags
from cortado.store.server.runs.writing import PlainWrites
from cortado.store.server.service import DECODED_ON_THE_LOOP_BYTES, READ_ON_THE_LOOP_BYTES, Service
from cortado.store.tables.read import PIECE_BYTES
from cortado.store.tables.stage import read_input
from cortado.store.tables.view import TableView

_EVERYWHERE: Final = documents_pb2.PUT_MODE_UPSERT


class _Rows(NamedTuple):
    """The keys and payloads of a run's documents, by request ids, in a table with this newest schema."""

    table: TableDescriptor
    newest_id: int
    by_request: dict[bytes, tuple[LogicalKey, bytes]]

    def fit(self, view: TableView) -> bool:
        return self.newest_id == view.newest_id and self.table == view.table


class PlainDocumentPuts(PlainWrites):
    """Upserts of documents into one table without indexes, which expire as the table says."""

    name = "cortado.v1.Documents/Put"
    request_bytes_max = READ_ON_THE_LOOP_BYTES
    bytes_max = DECODED_ON_THE_LOOP_BYTES

    def key_of_request(self, request: documents_pb2.PutDocumentRequest) -> Hashable | None:
        if request.mode != _EVERYWHERE or request.HasField("condition") or request.HasField("expiry"):
            return None
        table = request.table
        return (table.database, table.table) if request.document.WhichOneof("body") else None

    def replica_of(self, run: CallRun) -> Replica:
        return self.host.replica_of_table(*run.key)

    def left_out(self, run: CallRun) -> frozenset[bytes]:
        left_out, catalog = super().left_out(run), Service(self.host).catalog(self.replica_of(run))
        run.prepared = rows = _read(TableView(catalog, *run.key), run)
        return left_out.union(run.request_ids.keys() - rows.by_request.keys())

    def evaluation(self, run: CallRun) -> EvaluateRun:
        replica = self.replica_of(run)

        def evaluate(reader: Reader, first: Timestamp) -> RunEffects | None:
            view = TableView(replica.catalog(reader), *run.key)
            rows: _Rows = run.prepared if run.prepared.fit(view) else _read(view, run)
            try:
                keys, payloads = zip(*[rows.by_request[each] for each in run.request_ids], strict=True)
            except KeyError:
                return None
            expires_ms = Expiry(view.table.ttl_ms).expires_ms(reader)
            expiries = dict.fromkeys(keys, expires_ms) if expires_ms else NO_EXPIRIES
            return RunEffects(keys, payloads, put_etags(first, len(keys)), expiries=expiries)

        return evaluate


def _read(view: TableView, run: CallRun) -> _Rows:
    """Read the documents, and keep the valid ones; none if the table has an index."""
    rows = _Rows(view.table, view.newest_id, {})
    for call, request_id in zip(run.calls, run.request_ids, strict=True) if not view.indexes else ():
        try:
            payload, document = read_input(view, document_input(call.request.document))
            rows.by_request[request_id] = view.row_key(view.key_of(document)), payload
        except CortadoError:
            continue
    return rows


class PlainDocumentGets(PlainReads):
    """Documents of one table as they are stored, in Avro."""

    name = "cortado.v1.Documents/Get"

    def key_of(self, call: PlainCall) -> Hashable | None:
        request = call.request
        if request.HasField("at") or request.format != common_pb2.DOCUMENT_FORMAT_AVRO or request.schema_id:
            return None
        return request.table.database, request.table.table

    def replica_of(self, run: CallRun) -> Replica:
        return self.host.replica_of_table(*run.key)

    def replies(self, run: CallRun, reader: Reader, header: common_pb2.Header) -> Sequence[bytes | None]:
        view = TableView(self.replica_of(run).catalog(reader), *run.key)
        keys = [_row_key(view, call.request.key) for call in run.calls]
        asked = [key for key in keys if key is not None]
        # Documents beyond a piece go the general way: others of the loop go on in between.
        found = iter(reader.get_many(asked, max_bytes=PIECE_BYTES) if asked else ())
        head, replies = headed(header), list[bytes | None]()
        for key in keys:
            if key is None:
                replies.append(None)
                continue
            try:
                version = next(found)
            except StopIteration:
                break
            replies.append(head if version is None else document_reply(head, version))
        return replies


def _row_key(view: TableView, key: common_pb2.Key) -> LogicalKey | None:
    """Return the row's key; None for a key that is refused."""
    try:
        return view.row_key(view.encode_key(key_values(key, view.table.key)))
    except CortadoError:
        return None
