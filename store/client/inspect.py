"""One node, asked for its stored data, leader or not, and without going to another node.

:class:`~cortado.store.client.Client` finds the node that may answer. This asks one given node, since the question is
about its disk. Calls change nothing, so one that is refused for the moment is made again until its time
is over. Messages are those of ``cortado.v1.Inspect``; the directory of a stopped node is behind the same methods
(``cortado.store.server.inspection.stopped``), see :class:`Inspected`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from google.protobuf.message import Message

from cortado.errors import CortadoError, PermissionDenied, Unauthenticated, Unavailable
from cortado.proto.v1 import cluster_pb2, common_pb2, inspect_pb2, tables_pb2
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.authorization import TokenSource
from cortado.store.client.endpoints import Tls
from cortado.store.client.node import M, NodeConnection
from cortado.store.client.tables import descriptor_from_proto
from cortado.store.client.values import timestamp_of, timestamp_to_proto
from cortado.store.clock.timestamp import Timestamp


class Inspected(Protocol):
    """A subject of inspection: a running node, or the directory of a stopped one."""

    @property
    def name(self) -> str:
        """The node's id."""

    def last_applied(self) -> Timestamp:
        """Return the timestamp up to which all is there. Raises Unavailable or Unsupported if the data is no state."""

    def tables(self) -> Sequence[TableDescriptor]:
        """Return all tables that it knows. Raises NotLeader if another node knows better."""

    def read_log(self, request: inspect_pb2.ReadLogRequest) -> inspect_pb2.ReadLogResponse: ...

    def read_versions(self, request: inspect_pb2.ReadVersionsRequest) -> inspect_pb2.ReadVersionsResponse: ...

    def verify_range(self, request: inspect_pb2.VerifyRangeRequest) -> inspect_pb2.VerifyRangeResponse: ...

    def list_items(self, request: inspect_pb2.ListItemsRequest) -> inspect_pb2.ListItemsResponse: ...

    def check_table(self, table: str, at: Timestamp) -> Iterator[tables_pb2.CheckTableResponse]:
        """Yield progress and problems of a table check (``database.table``), the last reply being ``done``."""


class NodeInspector(NodeConnection):
    """A running node at one of ``addresses`` (host:port each): the first that answers, and that one alone from then on.

    ``timeout_s`` bounds each call. Raises Unavailable if none answers; a call raises the node's refusal, or
    DeadlineExceeded.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        tls: Tls | None = None,
        token: TokenSource | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        problems: list[str] = []
        for address in addresses:
            super().__init__(address, tls=tls, token=token, timeout_s=timeout_s)
            try:
                self._status = self.ask("Cluster/Status", cluster_pb2.StatusRequest(), cluster_pb2.StatusResponse)
            except (Unauthenticated, PermissionDenied):
                self.close()
                raise
            except CortadoError as problem:
                self.close()
                problems.append(f"{address}: {problem.message()}")
            else:
                return
        raise Unavailable("; ".join(problems))

    @property
    def name(self) -> str:
        """The node's id."""
        return self._status.header.node_id

    @property
    def cluster_id(self) -> str:
        """The cluster that it belongs to."""
        return self._status.header.cluster_id

    def last_applied(self) -> Timestamp:
        """Return the timestamp of the last entry that is applied there."""
        status = self._asked("Cluster/Status", cluster_pb2.StatusRequest(), cluster_pb2.StatusResponse)
        return timestamp_of(status.header.timestamp)

    def members(self) -> cluster_pb2.MembersResponse:
        """Return the cluster's members, as this node knows them."""
        return self._asked("Cluster/Members", cluster_pb2.MembersRequest(), cluster_pb2.MembersResponse)

    def tables(self) -> Sequence[TableDescriptor]:
        """Return all tables. Raises NotLeader if another node knows better."""
        found: list[TableDescriptor] = []
        request = tables_pb2.ListTablesRequest()
        while True:
            reply = self._asked("Tables/ListTables", request, tables_pb2.ListTablesResponse)
            found += map(descriptor_from_proto, reply.tables)
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    def read_log(self, request: inspect_pb2.ReadLogRequest) -> inspect_pb2.ReadLogResponse:
        """Return a page of its log. Raises InvalidArgument, DataLoss."""
        return self._asked("Inspect/ReadLog", request, inspect_pb2.ReadLogResponse)

    def read_versions(self, request: inspect_pb2.ReadVersionsRequest) -> inspect_pb2.ReadVersionsResponse:
        """Return a page of versions. Raises InvalidArgument, NotFound (a table or an index), DataLoss (the
        catalogue)."""
        return self._asked("Inspect/ReadVersions", request, inspect_pb2.ReadVersionsResponse)

    def verify_range(self, request: inspect_pb2.VerifyRangeRequest) -> inspect_pb2.VerifyRangeResponse:
        """Return the problems of a piece of its stored data, and a digest of it."""
        return self._asked("Inspect/VerifyRange", request, inspect_pb2.VerifyRangeResponse)

    def list_items(self, request: inspect_pb2.ListItemsRequest) -> inspect_pb2.ListItemsResponse:
        """Return the items of a piece, each as a digest."""
        return self._asked("Inspect/ListItems", request, inspect_pb2.ListItemsResponse)

    def rebuild(self, timeout_s: float) -> None:
        """Let it give its data up and fetch another member's; return when it is whole. The one call that changes
        something. Raises Unsupported for a node that is alone, OutcomeUnknown if no answer came in time (it goes
        on)."""
        request = cluster_pb2.RebuildReplicaRequest(node_id=self.name)
        reply_type = cluster_pb2.RebuildReplicaResponse
        self.ask("Cluster/RebuildReplica", request, reply_type, timeout_s=timeout_s, insists=True, changes=True)

    def check_table(self, table: str, at: Timestamp) -> Iterator[tables_pb2.CheckTableResponse]:
        """Prove that indexes and rows agree, here. Raises NotFound, DataLoss."""
        database, _, name = table.partition(".")
        read_at = common_pb2.ReadAt(timestamp=timestamp_to_proto(at))
        request = tables_pb2.CheckTableRequest(database=database, name=name, at=read_at)
        # It takes as long as the table is large.
        return self.replies("Tables/CheckTable", request, tables_pb2.CheckTableResponse)

    def _asked(self, method: str, request: Message, reply_type: type[M]) -> M:
        return self.ask(method, request, reply_type, insists=True)
