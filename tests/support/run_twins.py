"""Two nodes that are asked the same: one answers the plain calls of a message together, the other each by itself.

Both stand on clocks that are set, over stores in memory, and draw nothing from chance. So their appends, answers,
stores and measures have to be the same bytes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import pytest

from cortado.proto.v1 import calls_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2, transactions_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.observe.requests import Requests
from cortado.store.process.limits import NodeLimits
from cortado.store.replica import run_submission
from cortado.store.replica.write.run import Run
from cortado.store.server.authority import Authority
from cortado.store.server.calls_service import CallsLimits, CallsService
from cortado.store.server.convert import timestamp_message
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.runs import writing
from cortado.store.server.runs.methods import run_methods
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.transactions_service import TransactionsService
from support.nodes import NOW_MS, NodeDisk, SetClock, make_node, run
from support.run_commits import CommitAsker
from support.run_documents import DocumentAsker, create_tables

WAIT_S: Final = 60.0
METHOD: Final = "cortado.v1.KeyValue/"
KV: Final = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
DOCUMENTS: Final = documents_pb2.DESCRIPTOR.services_by_name["Documents"]
TABLES: Final = tables_pb2.DESCRIPTOR.services_by_name["Tables"]
TRANSACTIONS: Final = transactions_pb2.DESCRIPTOR.services_by_name["Transactions"]
SCHEMAS: Final = schemas_pb2.DESCRIPTOR.services_by_name["Schemas"]
LIMITS: Final = NodeLimits(evaluate_slice_ms=60_000)


class Served:
    """A node, and one stream of calls to it. Made on the loop; ``runs`` False: each call is answered by itself."""

    def __init__(
        self,
        *,
        runs: bool,
        limits: NodeLimits = LIMITS,
        authority: Any = None,
        calls_limits: CallsLimits | None = None,
        has_tables: bool = False,
    ) -> None:
        """``authority`` makes one of a node."""
        self._has_tables = has_tables
        self.clock = SetClock()
        self.disk = NodeDisk()
        self.node: Host = make_node(self.disk, clock=self.clock, limits=limits)
        self.requests = Requests()
        self._runs = runs
        self._authority = authority
        self._limits = calls_limits or CallsLimits(slice_ms=60_000.0)
        self.entries: list[bytes] = []
        self._messages: asyncio.Queue[calls_pb2.CallBatch] = asyncio.Queue()
        self._replies: asyncio.Queue[calls_pb2.CallReply] = asyncio.Queue()

    async def start(self) -> None:
        # To the millisecond: times in between follow a clock that is set a little later.
        self.node.process.clock._read_physical_ms = self.clock
        await self.node.start()
        # A client takes its first request id from a time that it was told.
        self.node.process.clock.now()
        if self._has_tables:
            await create_tables(self.node)
        authority: Authority | None = None if self._authority is None else self._authority(self.node)
        runs = run_methods(self.node, self.requests, authority) if self._runs else {}
        self.service = CallsService(
            [
                (KV, KeyValueService(self.node)),
                (DOCUMENTS, DocumentsService(self.node)),
                (TABLES, TablesService(self.node)),
                (SCHEMAS, SchemasService(self.node)),
                (TRANSACTIONS, TransactionsService(self.node)),
            ],
            requests=self.requests,
            limits=self._limits,
            authority=authority,
            runs=runs,
        )
        self._stream = self.service.exchange(self._sent())
        self._taking = asyncio.ensure_future(self._take())
        log = self.node.meta.log
        append = log.append

        def appended(entry: Any, **options: Any) -> Any:
            self.entries.append(entry.encode())
            return append(entry, **options)

        log.append = appended  # type: ignore[method-assign]

    async def stop(self) -> None:
        await self.hang_up()
        await self.node.stop()

    async def hang_up(self) -> None:
        """Break the stream."""
        self._taking.cancel()
        with suppress(asyncio.CancelledError):
            await self._taking
        await self._stream.aclose()

    async def _take(self) -> None:
        async for message in self._stream:
            for reply in calls_pb2.ReplyBatch.FromString(message).replies:
                self._replies.put_nowait(reply)

    async def _sent(self) -> AsyncGenerator[calls_pb2.CallBatch, None]:
        while True:
            yield await self._messages.get()

    def send(self, calls: Sequence[calls_pb2.Call], cancelled: Sequence[int] = ()) -> None:
        self._messages.put_nowait(calls_pb2.CallBatch(calls=calls, cancelled=cancelled))

    async def receive(self, count: int) -> dict[int, calls_pb2.CallReply]:
        """Receive ``count`` replies, by the ids of their calls."""
        found: dict[int, calls_pb2.CallReply] = {}
        async with asyncio.timeout(WAIT_S):
            while len(found) < count:
                reply = await self._replies.get()
                assert reply.id not in found
                found[reply.id] = reply
        return found

    async def call(self, calls: Sequence[calls_pb2.Call]) -> dict[int, calls_pb2.CallReply]:
        self.send(calls)
        return await self.receive(len(calls))

    async def applied(self) -> None:
        """Wait until all answered calls are stored."""
        replica = self.node.meta
        await replica.reads.applied_to(replica.read_ts())

    def stored(self) -> dict[Space, dict[bytes, bytes]]:
        """Return all that lies in its engine."""
        with self.node.process.engine.read() as txn:
            return {space: _all_of(txn, space) for space in (Space.DATA, Space.REQUESTS, Space.CHANGES)}

    def measured(self) -> dict[str, tuple[Any, ...]]:
        """Return for each method how many calls ended and how, were counted, came and were sent; and how commits
        ended."""
        commits = self.node.meta.driver.pipeline.measures.commits
        ends = {"commits": (commits.committed, commits.refused, commits.conflicts, commits.evaluated_again)}
        return ends | {
            name: (each.ok, dict(each.codes), each.durations.count, each.received_bytes, each.sent_bytes)
            for name, each in self.requests.methods.items()
        }


def _all_of(txn: Any, space: Space) -> dict[bytes, bytes]:
    page = txn.page(space, b"", b"\xff" * 600, max_items=1_000_000)
    assert page.exhausted
    return dict(zip(page.keys, page.values, strict=True))


def sizes_of_runs(patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of calls of each run of writes from now on."""
    found: list[int] = []

    def submit(*arguments: Any, **options: Any) -> Run:
        found.append(len(options["request_ids"]))
        return run_submission.submit_run(*arguments, **options)

    patch.setattr(writing, "submit_run", submit)
    return found


def serving(scenario: Callable[[Served], Awaitable[None]], **options: Any) -> None:
    """Run ``scenario`` with a node that answers plain calls together."""

    async def served() -> None:
        each = Served(runs=True, **options)
        await each.start()
        try:
            await scenario(each)
        finally:
            each.disk.release()
            await each.stop()

    run(served)


# --- questions -------------------------------------------------------------------------------------------------


class Asker:
    """Draws messages. It asks earlier questions again now and then."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._call_id = 0
        self._puts: list[bytes] = []
        self._deletes: list[bytes] = []
        self._etags: list[str] = [f"0.{NOW_MS - 1}.2"]
        self._now_ms = NOW_MS
        self._documents = DocumentAsker(source, self._request_id)
        self._commits = CommitAsker(source, self._request_id, self._etags)

    def answered(self, reply: calls_pb2.CallReply) -> None:
        """Keep an etag for later conditions, if the reply is one of a put or a commit: both have it in one place."""
        if reply.reply:
            self._etags.append(kv_pb2.KvPutResponse.FromString(reply.reply).etag)

    def message(self, now_ms: int) -> list[calls_pb2.Call]:
        self._now_ms = now_ms
        source = self._random
        if source.random() < 0.05:
            # It looks for pairs beside the loop: beside others, its place among them would be left to chance.
            return [self._numbered(*source.choice((self._drop, self._documents.register))())]
        plain = source.choice((0.0, 0.5, 0.9, 1.0))
        kinds = source.choice(self._KINDS)
        return [self._call(source.random() < plain, source.choice(kinds)) for _ in range(source.randrange(1, 40))]

    def _numbered(self, name: str, request: bytes) -> calls_pb2.Call:
        self._call_id += 1
        method = f"cortado.v1.{name}" if "/" in name else METHOD + name
        return calls_pb2.Call(id=self._call_id, method=method, request=request)

    def _call(self, is_plain: bool, plain: Callable[[Asker], tuple[str, bytes]]) -> calls_pb2.Call:
        name, request = plain(self) if is_plain else self._random.choice(self._OTHERS)(self)
        return self._numbered(name, request)

    def _key(self) -> bytes:
        source = self._random
        return source.choice((b"a", b"b", b"\0", b"a\0\xff", b"key-%d" % source.randrange(20), b"k" * 400, b"\0" * 200))

    def _namespace(self) -> str:
        return self._random.choice(("n", "n", "n", "m"))

    def _request_id(self) -> bytes:
        return b"".join((b"\0\0", (self._now_ms - 1).to_bytes(6), bytes(4), self._random.randbytes(8)))

    def _put(self, **fields: Any) -> kv_pb2.KvPutRequest:
        value = self._random.choice((b"", b"v", self._random.randbytes(100), b"\0" * 3_000))
        return kv_pb2.KvPutRequest(**{"namespace": self._namespace(), "key": self._key(), "value": value} | fields)

    def _plain_put(self) -> tuple[str, bytes]:
        request = self._put(request_id=self._request_id()).SerializeToString()
        self._puts.append(request)
        return "Put", request

    def _plain_delete(self) -> tuple[str, bytes]:
        fields = {"namespace": self._namespace(), "key": self._key(), "request_id": self._request_id()}
        request = kv_pb2.KvDeleteRequest(**fields).SerializeToString()
        self._deletes.append(request)
        return "Delete", request

    def _plain_get(self) -> tuple[str, bytes]:
        return "Get", kv_pb2.KvGetRequest(namespace=self._namespace(), key=self._key()).SerializeToString()

    # --- other calls -------------------------------------------------------------------------------------------

    def _conditional(self) -> tuple[str, bytes]:
        request = self._put(request_id=self._request_id())
        if self._random.random() < 0.5:
            request.condition.absent = True
        else:
            request.condition.etag = self._random.choice(self._etags)
        return "Put", request.SerializeToString()

    def _expiring(self) -> tuple[str, bytes]:
        request = self._put(request_id=self._request_id())
        request.expiry.ttl_ms = self._random.randrange(1, 200)
        return "Put", request.SerializeToString()

    def _without_id(self) -> tuple[str, bytes]:
        return "Put", self._put().SerializeToString()

    def _again(self) -> tuple[str, bytes]:
        return ("Put", self._random.choice(self._puts[-100:])) if self._puts else self._plain_put()

    def _other_under_an_id(self) -> tuple[str, bytes]:
        request = kv_pb2.KvPutRequest.FromString(self._again()[1])
        request.value += b"!"
        return "Put", request.SerializeToString()

    def _bad_put(self) -> tuple[str, bytes]:
        source = self._random
        ahead = b"".join((b"\0\0", (self._now_ms + source.choice((300, 90_000))).to_bytes(6), bytes(4), bytes(8)))
        bad: dict[str, Any] = source.choice(
            (
                {"key": b""},
                {"key": b"k" * 490},
                {"key": b"\0" * 300},
                {"namespace": ""},
                {"namespace": "not a name"},
                {"request_id": b"short"},
                {"request_id": ahead[:12] + source.randbytes(8)},
                {"value": bytes((1 << 20) + 1)},
            )
        )
        return "Put", self._put(**{"request_id": self._request_id()} | bad).SerializeToString()

    def _other_get(self) -> tuple[str, bytes]:
        request = kv_pb2.KvGetRequest.FromString(self._plain_get()[1])
        match self._random.randrange(5):
            case 0 | 1 if len(self._etags) > 1:
                # Not ahead of the log: there a read writes a ceiling.
                ts = Timestamp.parse(self._random.choice(self._etags))
                request.at.timestamp.CopyFrom(timestamp_message(ts))
            case 2:
                request.key = b""
            case 3:
                request.key = b"k" * 499
            case _:
                request.at.footprint = True
        return "Get", request.SerializeToString()

    def _deleted_again(self) -> tuple[str, bytes]:
        return ("Delete", self._random.choice(self._deletes[-100:])) if self._deletes else self._plain_delete()

    def _other_delete(self) -> tuple[str, bytes]:
        request = kv_pb2.KvDeleteRequest.FromString(self._plain_delete()[1])
        match self._random.randrange(5):
            case 0:
                request.condition.present = True
            case 1:
                request.condition.etag = self._random.choice(self._etags)
            case 2:
                request.key = self._random.choice((b"", b"k" * 490))
            case 3:
                request.request_id = b""
            case _:
                request.ClearField("namespace")
        return "Delete", request.SerializeToString()

    def _plain_multi_get(self) -> tuple[str, bytes]:
        source = self._random
        keys = [self._key() for _ in range(source.choice((1, 1, 2, 3, 10, 16)))]
        request = kv_pb2.KvMultiGetRequest(namespace=self._namespace(), keys=keys, may_stop_early=source.random() < 0.8)
        return "MultiGet", request.SerializeToString()

    def _other_multi_get(self) -> tuple[str, bytes]:
        request = kv_pb2.KvMultiGetRequest.FromString(self._plain_multi_get()[1])
        match self._random.randrange(6):
            case 0 | 1 if len(self._etags) > 1:
                ts = Timestamp.parse(self._random.choice(self._etags))
                request.at.timestamp.CopyFrom(timestamp_message(ts))
            case 2:
                request.keys.append(b"")
            case 3:
                del request.keys[:]
            case 4:
                request.at.footprint = True
            case _:
                request.keys.extend(b"key-%d" % number for number in range(17))
        return "MultiGet", request.SerializeToString()

    def _drop(self) -> tuple[str, bytes]:
        request = kv_pb2.DropNamespaceRequest(namespace="m", request_id=self._request_id())
        return "DropNamespace", request.SerializeToString()

    def _put_document(self) -> tuple[str, bytes]:
        return self._documents.put()

    def _get_document(self) -> tuple[str, bytes]:
        return self._documents.get()

    def _other_document(self) -> tuple[str, bytes]:
        return self._random.choice((self._documents.other_put, self._documents.other_get))()

    def _commit(self) -> tuple[str, bytes]:
        return self._commits.plain()

    def _other_commit(self) -> tuple[str, bytes]:
        return self._commits.other()

    def _garbage(self) -> tuple[str, bytes]:
        return self._random.choice((("Put", b"\xff\xff"), ("Get", b"\x0a\x05n"), ("Nothing", b""), ("Scan", b"")))

    _OTHERS = (
        *(_conditional, _expiring, _without_id, _again, _again, _other_under_an_id, _bad_put),
        *(_other_get, _deleted_again, _other_delete, _other_multi_get, _garbage),
        *(_other_document, _other_document, _other_document, _other_commit, _other_commit, _other_commit),
    )
    _KINDS = (
        *((_plain_put,), (_plain_get,), (_plain_delete,), (_plain_put, _plain_get)),
        *((_plain_put, _plain_put, _plain_put, _plain_delete), (_plain_put, _plain_delete, _plain_get)),
        *((_put_document,), (_get_document,), (_put_document, _get_document)),
        *(
            (_commit,),
            (_commit,),
            (_commit, _commit, _plain_put),
            (_commit, _plain_multi_get),
            (_commit, _plain_delete),
        ),
        *((_plain_multi_get,), (_plain_put, _plain_multi_get), (_plain_delete, _plain_multi_get, _plain_get)),
        (_plain_put, _plain_get, _plain_delete, _put_document, _put_document, _put_document, _get_document),
    )
    """A message draws its plain calls from one of these."""
