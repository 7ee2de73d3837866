"""What is asked of each system: the same keys, values and sizes, through the client that its users would take."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import grpc

from benchmarks.cluster.etcd_api import AsyncEtcdApi, EtcdApi
from cortado.store.client import AsyncClient, Client
from cortado.store.client.kv import Put

VALUE_BYTES: Final = 200
PUT_KEYS: Final = 1_000_000
"""Puts go to random keys among so many."""
STORED: Final = 20_000
"""Pairs that gets and ranges find."""
RANGE_KEYS: Final = 1_000
NAMESPACE: Final = "bench"


class Store(Protocol):
    """One system, asked from any number of threads."""

    def put(self, key: bytes, value: bytes) -> object: ...
    def get(self, key: bytes) -> bytes | None: ...
    def put_all(self, pairs: Sequence[tuple[bytes, bytes]]) -> object: ...
    def scan(self, start: bytes, end: bytes, limit: int) -> int: ...
    def close(self) -> None: ...


class CortadoStore:
    """Our client; its threads share one connection, and so messages."""

    def __init__(self, endpoints: Sequence[str], timeout_s: float = 10.0) -> None:
        self._client = Client(",".join(endpoints), timeout_s=timeout_s)
        self._kv = self._client.kv(NAMESPACE)

    def put(self, key: bytes, value: bytes) -> str:
        return self._kv.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        found = self._kv.get(key)
        return None if found is None else found.value

    def put_all(self, pairs: Sequence[tuple[bytes, bytes]]) -> str:
        return self._kv.batch([Put(key, value) for key, value in pairs])

    def scan(self, start: bytes, end: bytes, limit: int) -> int:
        return sum(1 for _ in self._kv.scan(start, end, limit=limit))

    def close(self) -> None:
        self._client.close()


class EtcdStore:
    """gRPC's Python client; its threads share one channel to the first endpoint, as etcd's own clients stay at one."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        self._channel = grpc.insecure_channel(endpoints[0], options=[("grpc.use_local_subchannel_pool", 1)])
        api = EtcdApi(self._channel)
        self.put, self.get, self.put_all, self.scan = api.put, api.get, api.put_all, api.scan

    def close(self) -> None:
        self._channel.close()


def open_store(system: str, endpoints: Sequence[str]) -> Store:
    """``endpoints`` has the leader's first."""
    return EtcdStore(endpoints) if system == "etcd" else CortadoStore(endpoints)


class AsyncStore(Protocol):
    """One system, asked from any number of tasks of one loop."""

    def put(self, key: bytes, value: bytes) -> Awaitable[object]: ...
    def get(self, key: bytes) -> Awaitable[bytes | None]: ...
    def put_all(self, pairs: Sequence[tuple[bytes, bytes]]) -> Awaitable[object]: ...
    def scan(self, start: bytes, end: bytes, limit: int) -> Awaitable[int]: ...
    async def close(self) -> None: ...


class AsyncCortadoStore:
    """Our client for asyncio."""

    def __init__(self, endpoints: Sequence[str], timeout_s: float = 10.0) -> None:
        self._client = AsyncClient(",".join(endpoints), timeout_s=timeout_s)
        self._kv = self._client.kv(NAMESPACE)

    def put(self, key: bytes, value: bytes) -> Awaitable[str]:
        return self._kv.put(key, value)

    async def get(self, key: bytes) -> bytes | None:
        found = await self._kv.get(key)
        return None if found is None else found.value

    def put_all(self, pairs: Sequence[tuple[bytes, bytes]]) -> Awaitable[str]:
        return self._kv.batch([Put(key, value) for key, value in pairs])

    async def scan(self, start: bytes, end: bytes, limit: int) -> int:
        # By the page: a step of an asynchronous iterator costs more than a pair.
        return sum([len(list(page)) async for page in self._kv.scan_pages(start, end, limit=limit)])

    async def close(self) -> None:
        await self._client.close()


class AsyncEtcdStore:
    """gRPC's client for asyncio, on one channel to the first endpoint."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        self._channel = grpc.aio.insecure_channel(endpoints[0], options=[("grpc.use_local_subchannel_pool", 1)])
        api = AsyncEtcdApi(self._channel)
        self.put, self.get, self.put_all, self.scan = api.put, api.get, api.put_all, api.scan

    async def close(self) -> None:
        await self._channel.close()


def open_async_store(system: str, endpoints: Sequence[str]) -> AsyncStore:
    """As :func:`open_store`, on the running loop."""
    return AsyncEtcdStore(endpoints) if system == "etcd" else AsyncCortadoStore(endpoints)


def stored_key(number: int) -> bytes:
    return b"stored-%08d" % number


def fill(store: Store) -> None:
    """What gets and ranges find."""
    for start in range(0, STORED, 500):
        store.put_all([(stored_key(number), bytes(VALUE_BYTES)) for number in range(start, start + 500)])


# --- the calls -----------------------------------------------------------------------------------------------------

Ask = Callable[[Any, random.Random], Any]
"""Asks a Store and gives what it answers, or an AsyncStore and gives what is to be awaited."""


def _put(store: Any, draw: random.Random) -> Any:
    return store.put(b"put-%08d" % draw.randrange(PUT_KEYS), draw.randbytes(VALUE_BYTES))


def _get(store: Any, draw: random.Random) -> Any:
    return store.get(stored_key(draw.randrange(STORED)))


def _scan(store: Any, draw: random.Random) -> Any:
    return store.scan(stored_key(draw.randrange(STORED - RANGE_KEYS)), b"stored.", RANGE_KEYS)


def _batch(size: int) -> Ask:
    """Neighbours, as the lines of one order are."""

    def ask(store: Any, draw: random.Random) -> Any:
        order = draw.randrange(PUT_KEYS)
        return store.put_all([(b"batch-%08d-%04d" % (order, line), bytes(VALUE_BYTES)) for line in range(size)])

    return ask


def _scattered(size: int) -> Ask:
    """Keys anywhere."""

    def ask(store: Any, draw: random.Random) -> Any:
        keys = draw.sample(range(PUT_KEYS), size)
        return store.put_all([(b"put-%08d" % key, bytes(VALUE_BYTES)) for key in keys])

    return ask


def _anything(_: object) -> bool:
    return True


def _is_stored(value: bytes | None) -> bool:
    return value is not None and len(value) == VALUE_BYTES


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of call, which counts for ``rows`` rows; ``is_right`` looks at each answer."""

    title: str
    ask: Ask
    rows: int = 1
    is_right: Callable[[Any], bool] = _anything

    def check(self, answer: object) -> None:
        """Raises ValueError for an answer that is wrong."""
        if not self.is_right(answer):
            raise ValueError(f"{self.title}: a wrong answer, {answer!r:.80}")


WORKLOADS: Final = {
    "put": Workload("put", _put),
    "get": Workload("linearizable get", _get, is_right=_is_stored),
    "batch100": Workload("batch of 100 puts, neighbours", _batch(100), 100),
    "scattered100": Workload("batch of 100 puts, anywhere", _scattered(100), 100),
    "batch1000": Workload("batch of 1,000 puts, neighbours", _batch(1_000), 1_000),
    "range1000": Workload("range of 1,000 keys", _scan, RANGE_KEYS, RANGE_KEYS.__eq__),
}
