"""``cortado.v1.Transactions``."""

from __future__ import annotations

import math
from typing import Final

from google.protobuf.message import Message

from cortado.errors import CortadoError, InvalidArgument, ResourceExhausted
from cortado.proto.v1 import transactions_pb2
from cortado.store.auth.caller import CALLER, asking
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import VALIDATION, Reader
from cortado.store.mvcc.seen import Seen
from cortado.store.mvcc.transacting import DECODING
from cortado.store.observe.measures import CommitOutcomes
from cortado.store.replica.replica import Replica
from cortado.store.server.allowances import Allowances
from cortado.store.server.commit_reads import replica_of_commit, search_changes
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.server.footprint_rights import check_may_read
from cortado.store.server.operation_messages import documents_of, operation_count, operations_of
from cortado.store.server.service import DECODED_ON_THE_LOOP_BYTES, READ_ON_THE_LOOP_BYTES, SLICE_MS_MAX, Service
from cortado.store.transactions.ahead import AHEAD_FROM, PIECE_OPERATIONS, Ahead
from cortado.store.transactions.commit import NOTHING_PREPARED, check_operations, evaluate_commit
from cortado.store.transactions.footprint import Footprint, join_footprints
from cortado.store.transactions.limits import TransactionLimits
from cortado.store.transactions.operations import Commit, Committed, Isolation

_ISOLATIONS: Final = {
    transactions_pb2.ISOLATION_SNAPSHOT: Isolation.SNAPSHOT,
    transactions_pb2.ISOLATION_SERIALIZABLE: Isolation.SERIALIZABLE,
}
_ATTEMPTS: Final = 3
CANCELLED_AT_ONCE: Final = 1_000
CANCELLED_MS: Final = 50.0
"""Each principal may cancel this number of unknown requests by settling them, and one more each ``CANCELLED_MS``."""


class TransactionsService(Service):
    """All keys of a commit are in one group, so it is one entry of that group's log."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._cancelled = Allowances(CANCELLED_AT_ONCE, CANCELLED_MS)

    async def commit(self, request: transactions_pb2.CommitRequest) -> bytes:
        measures = self.host.meta.driver.pipeline.measures.commits
        try:
            reply = await self._commit(request, measures)
        except CortadoError as error:
            measures.ended(error)
            raise
        measures.ended(None)
        return reply

    async def _commit(self, request: transactions_pb2.CommitRequest, measures: CommitOutcomes) -> bytes:
        count = operation_count(request.operations)
        limits = self.transaction_limits
        check_operations(count, limits)
        start, isolation, footprint = begun(request, limits)
        check_may_read(CALLER.get(), footprint, self.catalog(self.host.meta), start)
        replica = replica_of_commit(self.host, request.operations, footprint)
        # With a start, each key is checked for a change since then, packed ones, too.
        looked_up = len(request.operations) if start is None else count
        is_large = looked_up > AHEAD_FROM or _changes_bytes(request) > READ_ON_THE_LOOP_BYTES
        prepared = (
            NOTHING_PREPARED if is_large else await self.prepare(replica, request, documents_of(request.operations))
        )
        unchanged_to: Timestamp | None = None
        ahead: Ahead | None = None
        decoded_bytes_max: int | None = DECODED_ON_THE_LOOP_BYTES

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            if ahead is not None:
                return ahead.evaluate(reader, commit_ts, unchanged_to)
            catalog = replica.catalog(reader)
            if start is not None:
                catalog = catalog.unchanged_since(start)
            operations = operations_of(catalog, request.operations, "operations")
            commit = Commit(operations, start, isolation, footprint, unchanged_to, limits)
            return evaluate_commit(reader, commit_ts, catalog, commit, prepared, decoded_bytes_max)

        def reply(ts: Timestamp, value: object) -> Message:
            assert isinstance(value, Committed)
            return transactions_pb2.CommitResponse(etag=str(ts), sums=value.sums)

        for _ in range(_ATTEMPTS):
            if is_large:
                ahead = await self._ahead(replica, request, start, footprint)
            try:
                return await self.write(replica, request, request.request_id, evaluate, reply)
            except ResourceExhausted as refusal:
                if refusal.resource not in (VALIDATION, DECODING):
                    raise
                measures.evaluated_again += is_large
                is_large |= refusal.resource == DECODING
            if start is not None and footprint:
                unchanged_to = await search_changes(replica, footprint, start, unchanged_to or start)
        # Other commits were faster each time: evaluate it in its turn.
        ahead = decoded_bytes_max = None
        return await self.write(replica, request, request.request_id, evaluate, reply)

    async def _ahead(
        self,
        replica: Replica,
        request: transactions_pb2.CommitRequest,
        start: Timestamp | None,
        footprint: Footprint,
    ) -> Ahead:
        """Evaluate beside the loop, against the applied state. Raises NotLeader before the work, which would be in
        vain."""
        replica.check_serving()
        # Writes in flight would count as changes since then, before this commit has begun.
        await replica.reads.applied_to(await replica.reads.linearize())
        seen, at = Seen(), replica.applied.last_ts
        # Rows that have expired by now are absent, though nothing may have been written for a while.
        reader = replica.store.snapshot(at, seen, as_of=max(at, self.host.process.clock.reading()))
        catalog = replica.catalog(reader)
        if start is not None:
            catalog = catalog.unchanged_since(start)
        ahead = Ahead(reader, seen, catalog, start, footprint, self.transaction_limits)
        pieces = iter(range(0, len(request.operations), PIECE_OPERATIONS))

        def take_some() -> bool:
            """Take some operations; return whether there are more."""
            until_ms = self.host.process.monotonic_ms() + SLICE_MS_MAX
            for first in pieces:
                piece = request.operations[first : first + PIECE_OPERATIONS]
                if not ahead.take(operations_of(catalog, piece, "operations", first)):
                    break
                if self.host.process.monotonic_ms() > until_ms:
                    return True
            return False

        with self.host.process.scans.place():
            while await self.host.process.scan(take_some):
                pass
            await self.host.process.scan(ahead.finish)
        return ahead

    async def settle(self, request: transactions_pb2.SettleRequest) -> Message:
        for replica in self.host.replicas.values():
            # The id of a request does not tell its group: it is settled in each.
            result = await replica.settle(request.request_id, self._admit_cancelling)
            if result is not None:
                return transactions_pb2.SettleResponse(
                    header=self.header(result.ts),
                    happened=True,
                    timestamp=timestamp_message(result.ts),
                    reply=self.with_header(result),
                )
        return transactions_pb2.SettleResponse(header=self.header(self.host.meta.read_ts()))

    def _admit_cancelling(self) -> None:
        """Admit a cancellation: it writes the log, and makes room in the request table. Raises ResourceExhausted."""
        asker = asking()()
        wait_ms = 0.0 if asker.is_open else self._cancelled.wait_ms(asker.principal, self.host.process.monotonic_ms())
        if wait_ms:
            problem = f"principal {asker.principal} has cancelled {CANCELLED_AT_ONCE} unknown requests at once"
            resource = "cancelled requests"
            raise ResourceExhausted(problem, math.ceil(wait_ms), resource=resource, limit=CANCELLED_AT_ONCE)


def _changes_bytes(request: transactions_pb2.CommitRequest) -> int:
    return sum([len(each.update.changes_json) for each in request.operations])


def begun(
    request: transactions_pb2.CommitRequest, limits: TransactionLimits
) -> tuple[Timestamp | None, Isolation, Footprint]:
    """Return the transaction's start, isolation and footprint. Raises InvalidArgument, TooLarge."""
    isolation = _ISOLATIONS.get(request.isolation)
    if isolation is None:
        raise InvalidArgument("isolation", "is not known to this server", str(request.isolation))
    if not request.HasField("start"):
        if request.footprints:
            raise InvalidArgument("footprints", "must be empty without a start: nothing was read")
        return None, isolation, Footprint()
    if not request.request_id:
        # Without it a retry whose first attempt has committed would conflict with itself.
        raise InvalidArgument("request_id", "must be set together with start")
    return timestamp_value(request.start, "start"), isolation, join_footprints(request.footprints, limits)
