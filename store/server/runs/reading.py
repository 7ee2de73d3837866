"""Runs of reads of the newest state: one timestamp and one reader for all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from cortado.errors import CortadoError
from cortado.proto.v1 import common_pb2
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.replica import Replica
from cortado.store.server.runs.answering import LetIn, RunMethod
from cortado.store.server.runs.gathering import RUN_CALLS_MAX, CallRun, Outcome, PlainCall
from cortado.store.server.service import Service

_NONE: Final[frozenset[bytes]] = frozenset()


class PlainReads(RunMethod):
    """One method's reads that name no time."""

    only_reads = True

    @abstractmethod
    def replica_of(self, run: CallRun) -> Replica:
        """Return the replica that all its calls read."""

    @abstractmethod
    def replies(self, run: CallRun, reader: Reader, header: common_pb2.Header) -> Sequence[bytes | None]:
        """Return replies to the first calls. A call with None, or beyond their end, goes the general way. Raises
        CortadoError if all of them do."""

    @property
    def calls_max(self) -> int:
        return min(RUN_CALLS_MAX, self.host.process.limits.reads_max)

    def request_id_of(self, _call: PlainCall) -> bytes:
        return b""

    def left_out(self, _run: CallRun) -> frozenset[bytes]:
        return _NONE

    async def outcomes(self, run: CallRun, _of: LetIn) -> Sequence[Outcome]:
        with self.host.process.reads.place(count=len(run)):
            replica = self.replica_of(run)
            read_ts = await replica.reads.resolve(None)
            reader = replica.reader(read_ts)
            try:
                replies = self.replies(run, reader, Service(self.host).header(read_ts))
            except CortadoError:
                # If one of them is damaged, for example, each call finds out for itself.
                replies = ()
        return [*replies, *([None] * (len(run) - len(replies)))]
