"""A connection's time of reads, and its treatment of writes, if not "the newest" and "at once".

::

    client ................ no view: reads are linearizable, writes are sent
    client.at(then) ....... Past: everything is read then, nothing is written
    client.snapshot() ..... Snapshot: as Past, at the time of its own first read
    client.transaction() .. TransactionView: as Snapshot, and writes are kept for the commit (transaction_view.py)
    a large transaction ... StagingView: nothing is read, and bulk loads alone are written (large_transactions.py)

``Connection.through`` makes a connection of it. The services over that know nothing of views: a table of a
transaction is a table.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from cortado.errors import Unsupported
from cortado.proto.v1 import common_pb2, documents_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from cortado.store.client.runtime import Lock
    from cortado.store.client.stubs import Method


class View(Protocol):
    """How a connection reads and writes. Calls that read at no time, of schemas and members, do not pass through it.

    ``commits``: its reads are followed by a commit, which may validate them.
    """

    @property
    def commits(self) -> bool: ...

    def refusal(self, doing: str) -> Unsupported:
        """Return why ``doing`` is not done here."""
        ...

    def write(self, method: Method, request: Any, /) -> Any:
        """Return the reply to a write, or None until there is one. Raises Unsupported."""
        ...

    def staging(self) -> documents_pb2.Staging:
        """Return the large transaction's staging for the rows of bulk loads. Raises Unsupported."""
        ...

    def reading(self, request: Any, *, is_begun: bool = False) -> AbstractAsyncContextManager[Callable[[Any], None]]:
        """Wrap each wait for a reply to ``request``, and set its read time unless its reading ``is_begun``; gives a
        function to call with the reply. Raises Unsupported."""
        ...


async def read_through(view: View, request: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the reply to ``request``, which ``call`` sends, as ``view`` reads it."""
    async with view.reading(request) as observe:
        reply = await call()
        observe(reply)
        return reply


async def replies_through(view: View, request: Any, replies: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """Yield the ``replies`` to ``request``, which is sent with the first one, as ``view`` reads them."""
    is_begun = False
    async with aclosing(replies):
        while True:
            async with view.reading(request, is_begun=is_begun) as observe:
                reply = await anext(replies, None)
                if reply is None:
                    return
                observe(reply)
            is_begun = True
            yield reply


class Past:
    """Everything is read at one time, unless a request names another, and nothing is written."""

    commits = False

    def __init__(self, at: common_pb2.ReadAt) -> None:
        self._at = at

    def refusal(self, doing: str) -> Unsupported:
        return Unsupported(f"{doing} through a view of the past", "use the client that it was made of")

    def write(self, _method: Method, _request: Any, /) -> Any:
        """Raise Unsupported."""
        raise self.refusal("writing")

    def staging(self) -> documents_pb2.Staging:
        """Raise Unsupported."""
        raise self.refusal("writing")

    @asynccontextmanager
    async def reading(self, request: Any, *, is_begun: bool = False) -> AsyncIterator[Callable[[Any], None]]:
        if not is_begun:
            _turn(request, self._at)
        yield nothing_more


class Snapshot(Past):
    """As :class:`Past`, at the time that its first read turns out to have had. Others wait for that read."""

    def __init__(self, at: common_pb2.ReadAt, lock: Lock) -> None:
        """``at`` is how the first read is made."""
        super().__init__(at)
        self._lock = lock
        self._is_fixed = False

    @asynccontextmanager
    async def reading(self, request: Any, *, is_begun: bool = False) -> AsyncIterator[Callable[[Any], None]]:
        if not (self._is_fixed or is_begun or request.HasField("at")):
            async with self._lock:
                if not self._is_fixed:
                    _turn(request, self._at)
                    yield self._fix
                    return
        if not is_begun:
            _turn(request, self._at)
        yield nothing_more

    def _fix(self, reply: Any) -> None:
        self._at = common_pb2.ReadAt(timestamp=reply.header.timestamp)
        self._is_fixed = True


def is_continued(request: Any) -> bool:
    """Whether a scan goes on: its token holds the time, and is good for the request as it was."""
    return "page_token" in request.DESCRIPTOR.fields_by_name and bool(request.page_token)


def _turn(request: Any, at: common_pb2.ReadAt) -> None:
    if not request.HasField("at") and not is_continued(request):
        request.at.CopyFrom(at)


def nothing_more(reply: Any) -> None:
    """Do nothing: a later read tells nothing new."""
