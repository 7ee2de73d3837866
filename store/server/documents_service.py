"""``cortado.v1.Documents``: documents by key, in batches, in bulk and by range."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from google.protobuf.message import Message

from cortado.errors import InvalidArgument, TooLarge
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.paging import decode_token, request_shape
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.replica import Replica
from cortado.store.server.bulk_stream import BulkStream
from cortado.store.server.convert import condition_value, expiry_value, key_message, key_values, read_at_text
from cortado.store.server.document_messages import (
    aggregate_of,
    check_form,
    document_input,
    found_message,
    is_json,
    put_mode,
    range_bounds,
    scan_of,
    update_changes,
)
from cortado.store.server.scan_steps import AggregateSteps, ScanSteps, begun
from cortado.store.server.service import (
    KEYS_ON_THE_LOOP,
    ReplySize,
    Service,
    footprint_of,
)
from cortado.store.tables.aggregate import plan_aggregate
from cortado.store.tables.operations import Delete, Deleted, Put, Update, Updated
from cortado.store.tables.read import get, get_many
from cortado.store.tables.rows import BATCH_ROWS_MAX
from cortado.store.tables.scan import plan_scan, scan_range
from cortado.store.tables.split import TablePart, check_parts, table_parts
from cortado.store.tables.view import TableView
from cortado.store.tables.write import evaluate_delete, evaluate_put, evaluate_update


class DocumentsService(Service):
    """Reads at a time, writes through the replica, scans on the scan thread."""

    # --- by key ------------------------------------------------------------------------------------------------

    async def get(self, request: documents_pb2.GetDocumentRequest) -> Message:
        """Return at most one document; a key that is absent is no error."""
        replica = self._replica(request.table)
        with self.host.process.reads.place():
            read_ts = await self.scan_ts(replica, request.at)
            view = self._view(replica, request.table, read_ts, request.at)
            check_form(view, request.format, request.schema_id)
            reader, reads = await self.point_reader(replica, request.at, read_ts)
            if reads is not None:
                reads.rest_on(view.table)
            row = get(reader, view, key_values(request.key, view.table.key))
            found = None if row is None else found_message(view, row, request.format, request.schema_id)
        return documents_pb2.GetDocumentResponse(
            header=self.header(read_ts), found=found, footprint=footprint_of(reads, request.at)
        )

    async def multi_get(self, request: documents_pb2.MultiGetRequest) -> Message:
        """Return the documents in the order of the keys. If they outgrow a reply, or the time for one, return those
        that fit: the caller asks again for the rest. Raises TooLarge above BATCH_ROWS_MAX keys."""
        count = len(request.keys)
        if count > BATCH_ROWS_MAX:
            raise TooLarge("keys", f"must be at most {BATCH_ROWS_MAX}", str(count), count, BATCH_ROWS_MAX)
        replica, is_beside = self._replica(request.table), count > KEYS_ON_THE_LOOP
        with self.host.process.reads.place():
            read_ts = await (self.scan_ts if is_beside else self.read_ts)(replica, request.at)
            catalog = await self.applied_catalog_at(replica, read_ts, request.at) if is_beside else None
            reader, reads = await self.point_reader(replica, request.at, read_ts)
            if catalog is None:
                catalog = self.catalog_at(replica, read_ts, request.at)
            view = TableView(catalog, request.table.database, request.table.table)
            if reads is not None:
                reads.rest_on(view.table)
            if is_beside:
                reply = await self.host.process.scan(lambda: self._multi_get(request, view, reader, read_ts))
            else:
                reply = self._multi_get(request, view, reader, read_ts)
        reply.footprint = footprint_of(reads, request.at)
        return reply

    def _multi_get(
        self, request: documents_pb2.MultiGetRequest, view: TableView, reader: Reader, read_ts: Timestamp
    ) -> documents_pb2.MultiGetResponse:
        check_form(view, request.format, request.schema_id)
        keys = [key_values(key, view.table.key, f"keys[{i}]") for i, key in enumerate(request.keys)]
        reply = documents_pb2.MultiGetResponse(header=self.header(read_ts))
        rows = get_many(reader, view, keys)
        # The time counts from here on: else the lookup of many keys would use it up, in each call for the rest of them.
        size = ReplySize(self.host.process.monotonic_ms, may_stop_early=request.may_stop_early)
        for row in rows:
            found = documents_pb2.FoundDocument()
            if row is not None:
                found = found_message(view, row, request.format, request.schema_id)
            if not size.takes(found.ByteSize()):
                break
            reply.found.append(found)
        return reply

    async def put(self, request: documents_pb2.PutDocumentRequest) -> bytes:
        """Write one document. Raises ConditionFailed, UniqueViolation, InvalidDocument, KeyTooLong."""
        put = Put(
            database=request.table.database,
            table=request.table.table,
            document=document_input(request.document),
            mode=put_mode(request.mode),
            condition=condition_value(request.condition),
            expiry=expiry_value(request),
        )

        replica = self._replica(request.table)
        prepared = await self.prepare(replica, request, {0: (put.database, put.table, put.document)})

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            return evaluate_put(reader, commit_ts, replica.catalog(reader), put, prepared.get(0))

        def reply(ts: Timestamp, _value: object) -> Message:
            return documents_pb2.PutDocumentResponse(etag=str(ts))

        return await self.write(replica, request, request.request_id, evaluate, reply)

    async def update(self, request: documents_pb2.UpdateDocumentRequest) -> bytes:
        """Change fields of the newest document, and return it. Raises NotFound, else as :meth:`put`."""
        changes = update_changes(request.changes_json)
        condition, expiry = condition_value(request.condition), expiry_value(request)
        is_json(request.format)
        replica = self._replica(request.table)

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            catalog = replica.catalog(reader)
            database, name = request.table.database, request.table.table
            key = key_values(request.key, catalog.table(database, name).key)
            update = Update(database, name, key, changes, condition, json=True, expiry=expiry)
            evaluation = evaluate_update(reader, commit_ts, catalog, update)
            # The reply needs the catalogue of this very state, so it is made here.
            assert isinstance(evaluation.reply, Updated)
            view = TableView(catalog, database, name)
            found = found_message(view, evaluation.reply.row, request.format, 0)
            return Evaluation(evaluation.mutations, found, evaluation.control)

        def reply(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, documents_pb2.FoundDocument)
            return documents_pb2.UpdateDocumentResponse(found=value)

        return await self.write(replica, request, request.request_id, evaluate, reply)

    async def delete(self, request: documents_pb2.DeleteDocumentRequest) -> bytes:
        """Delete a document, and return whether there was one. Raises ConditionFailed."""
        condition, replica = condition_value(request.condition), self._replica(request.table)

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            catalog = replica.catalog(reader)
            database, name = request.table.database, request.table.table
            key = key_values(request.key, catalog.table(database, name).key)
            return evaluate_delete(reader, commit_ts, catalog, Delete(database, name, key, condition))

        def reply(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, Deleted)
            return documents_pb2.DeleteDocumentResponse(existed=value.existed)

        return await self.write(replica, request, request.request_id, evaluate, reply)

    # --- in bulk -----------------------------------------------------------------------------------------------

    async def bulk(self, requests: AsyncIterator[documents_pb2.BulkRequest]) -> AsyncGenerator[bytes, None]:
        """Answer chunks of rows in order, with an error for each refused row (:mod:`.bulk_stream`)."""
        with self.host.process.bulk_streams.place():
            async with aclosing(BulkStream(self).replies(requests)) as replies:
                async for reply in replies:
                    yield reply

    # --- by range ----------------------------------------------------------------------------------------------

    async def scan(self, request: documents_pb2.ScanRequest) -> AsyncGenerator[bytes, None]:
        """Yield rows in slices until the page, the limit or the range ends. All pages are of the first one's
        timestamp."""
        replica = self._replica(request.table)
        with self.host.process.scans.place():
            read_ts, catalog = await begun(self, replica, request)
            scan = scan_of(catalog, request)
            # A token is good for the same scan at the same time.
            shape = request_shape(scan.shape(), read_at_text(request.at))
            token = decode_token(request.page_token, shape) if request.page_token else None
            plan = plan_scan(catalog, scan, read_ts)
            reads = await self.transaction_reads(replica, request.at, read_ts)
            if reads is not None:
                reads.rest_on(plan.view.table)
            step = ScanSteps(self, replica, plan, shape, request, reads).step(token, request.page_size or None)
            async with aclosing(self.stream(step)) as replies:
                async for reply in replies:
                    yield reply

    async def aggregate(self, request: documents_pb2.AggregateRequest) -> AsyncGenerator[bytes, None]:
        """Yield groups, once all slices that they rest on are read: most slices make no reply."""
        replica = self._replica(request.table)
        with self.host.process.scans.place():
            read_ts, catalog = await begun(self, replica, request)
            asked = aggregate_of(catalog, request)
            shape = request_shape(asked.shape(), read_at_text(request.at))
            token = decode_token(request.page_token, shape) if request.page_token else None
            plan = plan_aggregate(catalog, asked, read_ts)
            reads = await self.transaction_reads(replica, request.at, read_ts)
            if reads is not None:
                reads.rest_on(plan.scan.view.table)
            steps = AggregateSteps(self, replica, plan, shape, request, reads)
            async with aclosing(self.stream(steps.begin(token))) as replies:
                async for reply in replies:
                    yield reply

    async def split(self, request: documents_pb2.SplitRequest) -> Message:
        """Return at most ``parts`` ranges of about as many rows each, or of about ``part_bytes`` each, which together
        are the requested range."""
        parts, part_bytes = check_parts(request.parts), request.part_bytes or None
        if request.range.HasField("prefix"):
            raise InvalidArgument("range.prefix", "cannot be split: give lower and upper")
        replica = self._replica(request.table)
        with self.host.process.scans.place():
            read_ts = await self.scan_ts(replica, request.at)
            view = self._view(replica, request.table, read_ts, request.at)
            lower, upper, _ = range_bounds(request.range, view.table.key)
            within = scan_range(view.table, None, lower, upper)
            counting = replica.store.split(*within, parts, read_ts, part_bytes)
            while not await self.host.process.scan(counting.step):
                pass
            found = table_parts(view, counting.parts(), lower, upper)
        return documents_pb2.SplitResponse(
            header=self.header(read_ts),
            ranges=[_range_message(part, view) for part in found],
            rows=[part.rows for part in found],
        )

    def _replica(self, table: documents_pb2.TableName) -> Replica:
        return self.host.replica_of_table(table.database, table.table)

    def _view(
        self, replica: Replica, table: documents_pb2.TableName, read_ts: Timestamp, at: common_pb2.ReadAt
    ) -> TableView:
        return TableView(self.catalog_at(replica, read_ts, at), table.database, table.table)


def _range_message(part: TablePart, view: TableView) -> common_pb2.KeyRange:
    key = view.table.key
    return common_pb2.KeyRange(
        start=None if part.lower is None else key_message(part.lower, key),
        end=None if part.upper is None else key_message(part.upper, key),
    )
