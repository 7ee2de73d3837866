"""The steps of a scan, and of an aggregate, on the scan thread: each reads on, and mostly makes a reply."""

from __future__ import annotations

from functools import partial

from cortado.proto.v1 import documents_pb2
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.dividing import divided
from cortado.store.mvcc.paging import PageToken, encode_token, read_ts_of
from cortado.store.mvcc.reader import ScanSource
from cortado.store.replica.replica import Replica
from cortado.store.server.document_messages import is_json, row_batch
from cortado.store.server.service import (
    SLICE_BYTES_MAX,
    SLICE_MS_MAX,
    SLICE_ROWS_MAX,
    Service,
    Step,
    footprint_of,
)
from cortado.store.tables.aggregate import AggregatePlan
from cortado.store.tables.aggregating import AggregateState, Beside, aggregate_step, begin_aggregate
from cortado.store.tables.kept_columns import kept_columns
from cortado.store.tables.runs import PROJECTED, Run
from cortado.store.tables.scan import Budget, ScanPlan, scan_step
from cortado.store.transactions.reading import TransactionReads


async def begun(
    service: Service, replica: Replica, request: documents_pb2.ScanRequest | documents_pb2.AggregateRequest
) -> tuple[Timestamp, Catalog]:
    """Return the timestamp and the catalog of a scan that begins or goes on at this replica."""
    if request.page_token:
        await replica.reads.caught_up()
        read_ts = await replica.reads.resolve(read_ts_of(request.page_token))
        await replica.reads.applied_to(read_ts)
        return read_ts, await service.applied_catalog_of(replica, read_ts)
    read_ts = await service.scan_ts(replica, request.at)
    return read_ts, await service.applied_catalog_at(replica, read_ts, request.at)


class ScanSteps:
    """The steps of one scan, each a reply."""

    def __init__(
        self,
        service: Service,
        replica: Replica,
        plan: ScanPlan,
        shape: bytes,
        request: documents_pb2.ScanRequest,
        reads: TransactionReads | None,
    ) -> None:
        self._service = service
        self._plan = plan
        self._shape = shape
        self._at = request.at
        self._json = is_json(request.format)
        self._reads = reads
        self._source: ScanSource = replica.store if reads is None else reads
        self._header = service.header(plan.read_ts)

    def step(self, token: PageToken | None, page_left: int | None) -> Step:
        """Read on from ``token``; no step follows at the end of the range, or of ``page_left`` rows."""

        def step() -> tuple[bytes, Step | None]:
            budget = Budget(
                rows=SLICE_ROWS_MAX if page_left is None else min(SLICE_ROWS_MAX, page_left),
                bytes=SLICE_BYTES_MAX,
                ms=SLICE_MS_MAX,
                clock_ms=self._service.host.process.monotonic_ms,
            )
            page = scan_step(self._source, self._plan, token, budget)
            reply = documents_pb2.ScanResponse(
                header=self._header,
                next_page_token=b"" if page.next is None else encode_token(page.next, self._shape),
                footprint=footprint_of(self._reads, self._at),
            )
            if self._json:
                reply.json_rows.extend(page.json_rows)
                reply.etags.extend(page.etags())
            else:
                reply.batches.extend(map(row_batch, page.runs))
                reply.projected_schema = self._plan.projected_schema
            left = None if page_left is None else page_left - page.rows
            following = None if page.next is None or left == 0 else self.step(page.next, left)
            return reply.SerializeToString(), following

        return step


class AggregateSteps:
    """The steps of one aggregate; a reply follows from several."""

    def __init__(
        self,
        service: Service,
        replica: Replica,
        plan: AggregatePlan,
        shape: bytes,
        request: documents_pb2.AggregateRequest,
        reads: TransactionReads | None,
    ) -> None:
        self._service = service
        self._plan = plan
        self._shape = shape
        self._at = request.at
        self._reads = reads
        self._store = replica.store
        self._source: ScanSource = replica.store if reads is None else reads
        self._header = service.header(plan.scan.read_ts)
        process = service.host.process
        # The reads of a transaction are noted in their order, so one thread makes them.
        self._beside = None if reads is not None else Beside(partial(divided, process.engine), process.scan_threads)

    def begin(self, token: PageToken | None) -> Step:
        """Read on from ``token``, or from the beginning."""
        kept = None if self._reads is not None else kept_columns(self._store, self._plan.scan)
        return self._step(begin_aggregate(self._plan, token, self._service.host.process.monotonic_ms(), kept))

    def _step(self, state: AggregateState) -> Step:
        def step() -> tuple[bytes | None, Step | None]:
            budget = Budget(
                rows=SLICE_ROWS_MAX,
                bytes=SLICE_BYTES_MAX,
                ms=SLICE_MS_MAX,
                clock_ms=self._service.host.process.monotonic_ms,
            )
            page = aggregate_step(self._source, self._plan, state, budget, self._beside)
            if page is None:
                return None, step
            aggregation = self._plan.aggregation
            reply = documents_pb2.AggregateResponse(
                header=self._header,
                groups=row_batch(Run(PROJECTED, page.bodies, page.lengths)),
                groups_schema=aggregation.groups_schema.text,
                result_schema=aggregation.result_schema.text,
                next_page_token=b"" if page.next is None else encode_token(page.next, self._shape),
                footprint=footprint_of(self._reads, self._at),
            )
            return reply.SerializeToString(), None if page.next is None else step

        return step
