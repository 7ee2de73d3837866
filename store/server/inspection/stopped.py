"""The directory of a node that does not run, behind the same calls as a node that does.

It is read in place: not a byte of it changes, and a server that is started meanwhile is refused. If the directory was
receiving a snapshot, its log can be read; its data is no state, and is not shown as one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from cortado.errors import DataLoss, InvalidArgument, Unsupported
from cortado.proto.v1 import common_pb2, tables_pb2
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.log_files.recovery import StoredGroup
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import marker_key
from cortado.store.server.convert import timestamp_message
from cortado.store.server.inspection.log import LogPart, log_question, read_log
from cortado.store.server.inspection.log_segments import LogSegments
from cortado.store.server.inspection.state import Stored
from cortado.store.server.inspection.verify import go_through, list_items, verify_range
from cortado.store.server.inspection.versions import read_versions
from cortado.store.server.stores import log_folder, read_log_groups
from cortado.store.tables.check import CheckPosition, check_step, plan_check

_ALL_PAGES: Final = None


class StoppedNode:
    """A context manager. Raises DataDirectoryError: nothing is there, a server runs on it, or a page is damaged."""

    def __init__(self, path: Path) -> None:
        self._engine = LmdbEngine.open_stopped(path, checked_bytes=_ALL_PAGES)
        self._path = path
        self._log = LogSegments.of_folder(log_folder(path))
        self._groups: Mapping[int, StoredGroup] | None = None
        self._stored = Stored(self._engine, lambda: time.monotonic_ns() / 1_000_000)
        try:
            self._header = self._make_header()
        except BaseException:
            self._engine.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._engine.close()

    def _make_header(self) -> common_pb2.Header:
        identity = self._engine.identity
        header = common_pb2.Header(cluster_id=identity.cluster_id, node_id=identity.node_id)
        try:
            header.timestamp.CopyFrom(timestamp_message(self._stored.applied().last_ts))
        except DataLoss as damage:
            # The log is readable without it, and scrub names the record; the applied state is unknown.
            self._damaged_state: DataLoss | None = damage
        else:
            self._damaged_state = None
        return header

    @property
    def name(self) -> str:
        """The node's id."""
        return self._engine.identity.node_id

    def last_applied(self) -> Timestamp:
        """Return the last applied timestamp. Raises DataLoss if its record is damaged, Unsupported if the data is no
        state."""
        if self._damaged_state is not None:
            raise self._damaged_state
        self._check_state()
        return self._stored.applied().last_ts

    def tables(self) -> list[TableDescriptor]:
        """Return all tables of the newest catalog. Raises DataLoss, Unsupported."""
        self._check_state()
        return self._stored.catalog().tables()

    def read_log(self, request: pb.ReadLogRequest) -> pb.ReadLogResponse:
        question = log_question(request)
        reply = read_log(self._stored, question, LogPart.of_stored(self._stored_log(), question))
        reply.header.CopyFrom(self._header)
        return reply

    def _stored_log(self) -> StoredGroup | None:
        """Return the log as a start would find it. Raises DataLoss."""
        if self._groups is None:
            self._groups = read_log_groups(self._path)
        return self._groups.get(META_GROUP.group_id)

    def read_versions(self, request: pb.ReadVersionsRequest) -> pb.ReadVersionsResponse:
        self._check_state()
        reply = read_versions(self._stored, request)
        reply.header.CopyFrom(self._header)
        return reply

    def verify_range(self, request: pb.VerifyRangeRequest) -> pb.VerifyRangeResponse:
        reply = go_through(verify_range(self._stored, self._log, request))
        reply.header.CopyFrom(self._header)
        return reply

    def list_items(self, request: pb.ListItemsRequest) -> pb.ListItemsResponse:
        reply = list_items(self._stored, request)
        reply.header.CopyFrom(self._header)
        return reply

    def check_table(self, table: str, at: Timestamp) -> Iterator[tables_pb2.CheckTableResponse]:
        """Check a table as ``cortado.v1.Tables/CheckTable`` does. Raises NotFound, DataLoss."""
        database, _, name = table.partition(".")
        if not name:
            raise InvalidArgument("table", "must be database.table", table)
        self._stored.know_unresolved()
        plan = plan_check(self._stored.catalog(at), database, name, at)
        position: CheckPosition | None = None
        rows = entries = 0
        while True:
            page = check_step(self._stored.store, plan, position)
            rows, entries, position = rows + page.rows_checked, entries + page.entries_checked, page.next
            yield tables_pb2.CheckTableResponse(
                header=self._header,
                rows_checked=rows,
                entries_checked=entries,
                problems=[
                    tables_pb2.CheckProblem(index=each.index, kind=str(each.kind), key=each.key, message=each.message)
                    for each in page.problems
                ],
                done=position is None,
            )
            if position is None:
                return

    def _check_state(self) -> None:
        with self._engine.read() as txn:
            marker = txn.get(Space.META, marker_key(META_GROUP.group_id))
        if marker is not None:
            problem = "it was receiving a snapshot when it stopped: its data is no complete state"
            raise Unsupported(f"looking at the data of {self._path}", problem)
