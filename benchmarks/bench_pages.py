"""Pages of 1,000 pairs in CPU time: a page's cost to the node that reads it, and to the client that takes it apart.

A node alone over LMDB on the disk, values of 200 bytes with one version or with ten old ones. The call is given to the
service as it would come out of a message, and its reply to the client's reader. By the compiled kernel, and by Python.

    python -m benchmarks.bench_pages
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvloop
from rich.console import Console

from benchmarks.loop_holds import running
from benchmarks.report import Measurement, show
from cortado.proto.v1 import common_pb2, kv_pb2, transactions_pb2
from cortado.store.client.kv import unpacked
from cortado.store.keys.packing import join
from cortado.store.mvcc.kernel.scanning import RowKernel
from cortado.store.mvcc.kernel.seam import compile_ahead, compiled_folder, load
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.transactions_service import TransactionsService

TITLE: Final = "Pages of pairs"
PAIRS: Final = 1_000
STORED: Final = 5_000
VERSIONS: Final = {"one": 1, "eleven": 11}
VALUE_BYTES: Final = 200
ROUNDS: Final = 30
REPEATS: Final = 20


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"pages of {PAIRS:,} pairs a second of CPU time, values of {VALUE_BYTES} bytes; the best of {ROUNDS} rounds of "
        f"{REPEATS}, both ways in turns"
    )


def run() -> list[Measurement]:
    """Measure everything; takes some twenty seconds."""
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as name:
        return uvloop.run(_run(Path(name)))


async def _run(path: Path) -> list[Measurement]:
    kernel = load(compiled_folder() or compile_ahead())
    async with running(path) as host:
        pairs, store = KeyValueService(host), host.meta.store
        found, page = [], b""
        for name, versions in VERSIONS.items():
            for _ in range(versions):
                await _write(TransactionsService(host), name)
            request = _request(name)
            # All unapplied entries are applied for it.
            await pairs.scan_page(request)

            def read(by: RowKernel | None, request: kv_pb2.KvScanRequest = request) -> bytes:
                store.kernel = by
                return _ended(pairs.scan_page(request))

            page = read(kernel)
            compiled, python = _rates(partial(read, kernel), partial(read, None))
            # By Python a page may end before it has that many rows.
            share = len(_packed(read(None)).versions) / len(_packed(page).versions)
            found.append(Measurement(f"node, {name} version", compiled, "pages", "Python's path", python * share))
        [client] = _rates(lambda: list(unpacked(_packed(page))))
        return [*found, Measurement("client", client, "pages")]


def _packed(page: bytes) -> kv_pb2.KvPackedPairs:
    return kv_pb2.KvScanResponse.FromString(page).packed


async def _write(service: TransactionsService, name: str) -> None:
    for first in range(0, STORED, PAIRS):
        packed = common_pb2.KvPackedOperations(namespace=name)
        packed.keys, packed.key_lengths = join([_key(number) for number in range(first, first + PAIRS)])
        packed.values, packed.value_lengths = join([os.urandom(VALUE_BYTES) for _ in range(PAIRS)])
        await service.commit(transactions_pb2.CommitRequest(operations=[common_pb2.Operation(packed_pairs=packed)]))


def _request(name: str) -> kv_pb2.KvScanRequest:
    request = kv_pb2.KvScanRequest(namespace=name, packed=True, limit=PAIRS)
    request.range.start, request.range.end = _key(PAIRS), _key(2 * PAIRS)
    return request


def _key(number: int) -> bytes:
    return b"stored-%07d" % number


def _ended(call: Coroutine[Any, Any, bytes]) -> bytes:
    """Return the reply of a call that has nothing to wait for."""
    try:
        call.send(None)
    except StopIteration as ended:
        reply: bytes = ended.value
        return reply
    raise AssertionError("it waits")


def _rates(*calls: Callable[[], object]) -> list[float]:
    """Return calls a second of CPU, of each."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            began = time.process_time()
            for _ in range(REPEATS):
                call()
            best[place] = min(best[place], time.process_time() - began)
    return [REPEATS / each for each in best]


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
