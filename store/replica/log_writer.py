"""The log's side of a replica's disk: one batch of writes at a time goes to the log files, and becomes durable.

Votes, acknowledgements and answers wait for this write alone. If there is no room, a group of one takes its last
entries back, since no other node holds them: their callers are refused, and writes evaluated on top of them are
evaluated again. In a larger group they stand, and are tried again, whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.raft.log import RecordKind
from cortado.raft.records import Writes
from cortado.store.replica.compaction import Compaction
from cortado.store.replica.context import GroupContext
from cortado.store.replica.outstanding import Outstanding
from cortado.store.replica.read.read_index import ReadIndex
from cortado.store.replica.write.pipeline import Pipeline

_LOG: Final = logging.getLogger(__name__)

SMALL_BYTES: Final = 64 << 10
SMALL_CALLERS: Final = 8
"""A leader runs no write on the loop for which more callers wait."""


class LogWriter(Outstanding[Writes, None]):
    """``on_durable`` is called when the log and the pipeline know of it, ``on_refused`` after there was no room."""

    def __init__(
        self,
        group: GroupContext,
        pipeline: Pipeline,
        read_index: ReadIndex,
        *,
        on_durable: Callable[[], None],
        on_refused: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        super().__init__(group.log_thread, group.process.monotonic_ms, on_failure=on_failure)
        self._log = group.log
        self._log_files = group.process.log_files
        self._limits = group.process.limits
        self._pipeline = pipeline
        self._read_index = read_index
        self._on_durable = on_durable
        self._on_refused = on_refused
        self.compaction = Compaction(
            group.log,
            group.process.raft,
            held_bytes_max=group.process.limits.held_bytes_max,
            applied_index=group.machine.state.index,
        )
        """When applied entries may be dropped from the log."""

    def take(self) -> Writes | None:
        return self._log.storing.ready() or None

    def is_small(self, work: Writes) -> bool:
        size_bytes = 0
        for each in work:
            size_bytes += len(each.payload)
            if size_bytes > SMALL_BYTES or each.kind is not RecordKind.ENTRY:
                return False
        if len(self._log.configuration.voters) == 1:
            # No other node takes over if the disk hangs.
            return False
        if self._log.is_leader and self._pipeline.uncommitted_callers > SMALL_CALLERS:
            # The loop has more to do meanwhile: it evaluates the next batch.
            return False
        return self._log_files.writes_alone(work)

    def run(self, work: Writes) -> None:
        self._log_files.append(work)

    def done(self, work: Writes, _outcome: None) -> None:
        self._log.synced(work)
        self._pipeline.stored()
        self.compaction.durable(sum([len(each.payload) for each in work]), self._pipeline.applied.index)
        self._pipeline.batch_bytes_max = self.compaction.pacing.batch_bytes(self._limits.batch_bytes_max)
        self._on_durable()

    def no_room(self, work: Writes, error: ResourceExhausted) -> bool:
        if not self.refused_for:
            _LOG.warning("nothing can be stored: %s", error)
        log = self._log
        is_taken_back = log.withdraw(work)
        if is_taken_back:
            refused_to = max([each.index for each in work if each.kind is RecordKind.ENTRY], default=0)
            self._pipeline.take_back(refused_to, self._read_index.withdraw(), error)
        elif len(log.configuration.voters) == 1:
            # No other node takes over, so nothing in line would be stored before there is room.
            self._pipeline.refuse_waiting(error)
        self._on_refused()
        return is_taken_back
