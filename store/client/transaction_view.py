"""A transaction's reads and writes so far: the view that its tables and namespaces read and write through.

::

    the first read ............ linearizable; its timestamp is the start of the transaction
    every other read .......... at the start, with the transaction's own writes there (ReadAt.own_writes)
    a validated read .......... with a footprint (ReadAt.footprint), which is kept for the commit
    a write ................... is kept, in its order

The server applies own writes to a state with the code that commits them; so a scan by an index or with a
filter sees them as well as a get does. Nothing is sent that would begin a transaction, or end one that wrote nothing.

One caller at a time uses it: a second one's reads and writes in between would have no order in a transaction. A scan
counts only while its next rows are waited for, so rows may be changed while they are gone through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Final

from cortado.errors import CortadoError, InvalidArgument, TooLarge, Unsupported
from cortado.proto.v1 import common_pb2, documents_pb2, transactions_pb2
from cortado.store.client.arguments import shown
from cortado.store.client.operations import Scope, count_of, operations_of, scope_of
from cortado.store.client.stubs import Method
from cortado.store.client.views import is_continued, nothing_more

OPERATIONS_MAX: Final = 10_000
"""As many as a server commits at once."""
BYTES_MAX: Final = 8 << 20
"""Bytes of operations and footprints: a commit is one message, and no server takes a larger one."""

_ISOLATIONS: Final = {
    "snapshot": transactions_pb2.ISOLATION_SNAPSHOT,
    "serializable": transactions_pb2.ISOLATION_SERIALIZABLE,
}
_READS: Final = {
    "GetDocumentRequest",
    "MultiGetRequest",
    "ScanRequest",
    "AggregateRequest",
    "KvGetRequest",
    "KvMultiGetRequest",
    "KvScanRequest",
}
"""Those that know own writes and footprints."""


class _Kept:
    """The reply to a write that waits for its commit: it tells nothing yet."""

    etag = None
    existed = None
    found = None
    sums = (None,)


class _Alone:
    """Lets one caller in at a time, until the transaction has ended. No generator, since each call passes it."""

    __slots__ = ("_is_used", "_lock", "ended")

    def __init__(self) -> None:
        self.ended = ""
        """How; empty before."""
        self._lock = threading.Lock()
        self._is_used = False

    def __enter__(self) -> None:
        with self._lock:
            if self.ended:
                raise Unsupported("using a transaction after its end", self.ended)
            if self._is_used:
                raise Unsupported("using a transaction from two threads or tasks at once", "begin one for each")
            self._is_used = True

    def __exit__(self, *_: object) -> None:
        self._is_used = False


class _Reading:
    """Around one wait for a reply."""

    __slots__ = ("_alone", "_is_begun", "_request", "_view")

    def __init__(self, view: TransactionView, alone: _Alone, request: Any, is_begun: bool) -> None:
        self._view = view
        self._alone = alone
        self._request = request
        self._is_begun = is_begun

    async def __aenter__(self) -> Callable[[Any], None]:
        self._alone.__enter__()
        try:
            return self._view.begin_reading(self._request, self._is_begun)
        except BaseException:
            self._alone.__exit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._alone.__exit__()


class TransactionView:
    """The reads and writes of one transaction."""

    commits = True

    def __init__(self, isolation: str) -> None:
        """Raises InvalidArgument naming the isolations there are."""
        number = _ISOLATIONS.get(isolation) if isinstance(isolation, str) else None
        if number is None:
            raise InvalidArgument("isolation", f"must be one of {', '.join(_ISOLATIONS)}", shown(isolation))
        self._isolation = number
        self._start: common_pb2.Timestamp | None = None
        self._operations: list[common_pb2.Operation] = []
        self._own: dict[Scope, list[common_pb2.Operation]] = {}
        self._sorted = 0
        self._footprints: dict[bytes, None] = {}
        self._count = 0
        self._size_bytes = 0
        self._unfit: CortadoError | None = None
        self._alone = _Alone()

    # --- its life ------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return not self._alone.ended

    def end(self, how: str) -> None:
        """Refuse every use from now on, since ``how``, such as "it was committed"."""
        self._alone.ended = how
        self._operations, self._own, self._footprints = [], {}, {}

    def alone(self) -> AbstractContextManager[None]:
        """Guard each use. Raises Unsupported if the transaction has ended, or another caller uses it just now."""
        return self._alone

    def commit_request(self) -> transactions_pb2.CommitRequest | None:
        """Return the commit, None if nothing was written. Raises TooLarge if it has read more than is validated."""
        if self._unfit is not None:
            raise self._unfit
        if not self._operations:
            return None
        return transactions_pb2.CommitRequest(
            start=self._start, isolation=self._isolation, operations=self._operations, footprints=self._footprints
        )

    # --- as a view of a connection -------------------------------------------------------------------------------

    def refusal(self, doing: str) -> Unsupported:
        """Return why ``doing`` is not done here."""
        return Unsupported(f"{doing} in a transaction", "use the client that it was begun with")

    def write(self, method: Method, request: Any, /) -> Any:
        """Keep a write. Raises Unsupported for requests other than writes of documents or pairs, TooLarge."""
        operations = operations_of(method.name, request)
        if operations is None:
            raise self.refusal(method.name.removeprefix("cortado.v1."))
        with self.alone():
            self._keep(operations)
        return _Kept

    def staging(self) -> documents_pb2.Staging:
        """Raise Unsupported: bulk loads are for large transactions."""
        raise self.refusal("writing")

    def reading(self, request: Any, *, is_begun: bool = False) -> AbstractAsyncContextManager[Callable[[Any], None]]:
        """See :class:`~cortado.store.client.views.View`."""
        return _Reading(self, self._alone, request, is_begun)

    def begin_reading(self, request: Any, is_begun: bool) -> Callable[[Any], None]:
        """Set the read time of ``request``; return a function to call with the reply. Raises Unsupported."""
        if request.DESCRIPTOR.name == "DescribeTableRequest":
            # The shape of the rows that are read at the start. It rests on nothing, and begins nothing.
            if self._start is not None and not request.HasField("at"):
                request.at.timestamp.CopyFrom(self._start)
            return nothing_more
        if not is_begun and not is_continued(request):
            self._turn(request)
        has_footprint = request.at.footprint
        return lambda reply: self._observe(reply, has_footprint)

    # --- keeping -------------------------------------------------------------------------------------------------

    def _turn(self, request: Any) -> None:
        name = request.DESCRIPTOR.name
        if name not in _READS:
            raise self.refusal(name.removesuffix("Request"))
        at = request.at
        if at.WhichOneof("kind") is not None and at.timestamp != self._start:
            raise Unsupported("reading at another time in a transaction", "all of it is read at one")
        if self._start is not None:
            at.timestamp.CopyFrom(self._start)
        if self._isolation == transactions_pb2.ISOLATION_SERIALIZABLE:
            at.footprint = True
        if self._operations:
            at.own_writes.extend(self._own_of(scope_of(request)))

    def _own_of(self, scope: Scope) -> Sequence[common_pb2.Operation]:
        """Return the writes there. They are sorted when a read asks for them: most transactions read before they
        write."""
        for each in self._operations[self._sorted :]:
            kind = str(each.WhichOneof("operation"))
            if kind not in ("check", "check_pair"):  # They change nothing that a read could see.
                self._own.setdefault(scope_of(getattr(each, kind)), []).append(each)
        self._sorted = len(self._operations)
        return self._own.get(scope, ())

    def _observe(self, reply: Any, has_footprint: bool) -> None:
        if self._start is None:
            self._start = reply.header.timestamp
        if has_footprint and reply.footprint not in self._footprints:
            self._footprints[reply.footprint] = None
            try:
                self._grow(len(reply.footprint))
            except TooLarge as unfit:
                # It can never be committed whole, even if its caller goes on.
                self._unfit = unfit
                self._footprints = {}
                raise

    def _keep(self, operations: list[common_pb2.Operation]) -> None:
        count = self._count + sum(map(count_of, operations))
        if count > OPERATIONS_MAX:
            problem = f"a transaction may have {OPERATIONS_MAX} operations"
            raise TooLarge("operations", problem, str(count), count, OPERATIONS_MAX)
        self._grow(sum([each.ByteSize() for each in operations]))
        self._count = count
        self._operations += operations

    def _grow(self, size_bytes: int) -> None:
        size_bytes += self._size_bytes
        if size_bytes > BYTES_MAX:
            problem = f"a transaction may have {BYTES_MAX} bytes of operations and footprints"
            raise TooLarge("transaction", problem, f"{size_bytes} bytes", size_bytes, BYTES_MAX)
        self._size_bytes = size_bytes
