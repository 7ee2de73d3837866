"""Pages of pairs, packed from the kernel's buffers, and the same pairs one by one, and as Python reads them.

Keys are of one length and of many, with zeros among them; pairs are overwritten and deleted, and expire; transactions
have writes of their own; scans end by rows, bytes and a limit, either way, with values or without, and go on by token.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from cortado.proto.v1 import common_pb2, kv_pb2
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.packing import cut, cut_equal
from cortado.store.kv import scan as kv_scan
from cortado.store.server.kv_service import KeyValueService
from support.engines import open_lmdb
from support.kernels import row_kernel
from support.nodes import NodeDisk, SetClock, make_node

NAMESPACE = "n"
PUTS = 400
SCANS = 40
SIZES = [0, 1, 4, 20, 200, 2_000, 6_000]

Pair: TypeAlias = tuple[bytes, bytes, str]

pytestmark = pytest.mark.slow


def a_key(draw: Random) -> bytes:
    kind, number = draw.randrange(4), draw.randrange(60)
    if kind == 0:
        return b"even-%04d" % number
    if kind == 1:
        return b"odd" + b"-" * (number % 20) + b"%d" % number
    return b"zero" + number.to_bytes(8) if kind == 2 else b"\0\xff\0\1"[: 1 + number % 4] + bytes(number % 9)


def an_expiry(draw: Random, clock: SetClock) -> common_pb2.Expiry | None:
    return common_pb2.Expiry(at_ms=clock.now_ms + draw.randrange(1, 40)) if draw.random() < 0.15 else None


async def write(kv: KeyValueService, draw: Random, clock: SetClock) -> list[Timestamp]:
    """Put and delete; return times between the writes."""
    times = []
    for _ in range(PUTS):
        clock.now_ms += draw.randrange(2)
        key = a_key(draw)
        if draw.random() < 0.2:
            await kv.delete(kv_pb2.KvDeleteRequest(namespace=NAMESPACE, key=key))
            continue
        value = draw.randbytes(draw.choice(SIZES))
        put = kv_pb2.KvPutRequest(namespace=NAMESPACE, key=key, value=value, expiry=an_expiry(draw, clock))
        reply = kv_pb2.KvPutResponse.FromString(await kv.put(put))
        times.append(Timestamp.parse(reply.etag))
    return times


def a_request(draw: Random, times: list[Timestamp]) -> kv_pb2.KvScanRequest:
    request = kv_pb2.KvScanRequest(
        namespace=NAMESPACE,
        reverse=draw.random() < 0.4,
        keys_only=draw.random() < 0.2,
        limit=draw.choice([0, 0, 1, 7, 50]),
        page_size=draw.choice([0, 1, 3, 20]),
    )
    bounds = sorted((a_key(draw), a_key(draw)))
    kind = draw.randrange(4)
    if kind == 0:
        request.range.start, request.range.end = bounds
    elif kind == 1:
        request.range.prefix = bounds[0][:2]
    if draw.random() < 0.4:
        ts = draw.choice(times)
        request.at.timestamp.CopyFrom(common_pb2.Timestamp(epoch=ts.epoch, wall_ms=ts.wall_ms, logical=ts.logical))
    elif draw.random() < 0.5:
        for _ in range(draw.randrange(1, 6)):
            operation = request.at.own_writes.add()
            if draw.random() < 0.3:
                operation.delete_pair.namespace, operation.delete_pair.key = NAMESPACE, a_key(draw)
            else:
                operation.put_pair.namespace, operation.put_pair.key = NAMESPACE, a_key(draw)
                operation.put_pair.value = draw.randbytes(draw.choice(SIZES))
    return request


def pairs_of(reply: kv_pb2.KvScanResponse, *, packed: bool) -> list[Pair]:
    if not packed:
        assert not reply.HasField("packed")
        return [(pair.key, pair.value, pair.etag) for pair in reply.pairs]
    assert not reply.pairs
    keys = cut(reply.packed.keys, reply.packed.key_lengths)
    values = cut(reply.packed.values, reply.packed.value_lengths)
    versions = cut_equal(reply.packed.versions, TIMESTAMP_BYTES)
    etags = [str(Timestamp.from_bytes(each)) for each in versions]
    return list(zip(keys, values, etags, strict=True))


async def pages_of(kv: KeyValueService, request: kv_pb2.KvScanRequest, *, packed: bool) -> list[list[Pair]]:
    """Return all pages of a scan, by calls."""
    asked = kv_pb2.KvScanRequest.FromString(request.SerializeToString())
    asked.packed = packed
    pages = []
    while True:
        reply = kv_pb2.KvScanResponse.FromString(await kv.scan_page(asked))
        pages.append(pairs_of(reply, packed=packed))
        if not reply.next_page_token:
            return pages
        asked.page_token = reply.next_page_token


async def streamed(kv: KeyValueService, request: kv_pb2.KvScanRequest) -> list[Pair]:
    asked = kv_pb2.KvScanRequest.FromString(request.SerializeToString())
    asked.packed, asked.page_size = True, 0
    replies = [kv_pb2.KvScanResponse.FromString(each) async for each in kv.scan(asked)]
    return [pair for reply in replies for pair in pairs_of(reply, packed=True)]


def use_kernel(node: Host, kernel: object) -> None:
    node.meta.store.kernel = kernel  # type: ignore[assignment]


@pytest.mark.parametrize("seed", range(6))
def test_packed_pages_are_those_of_pairs_one_by_one_and_of_python(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, draw, clock = row_kernel(), Random(seed), SetClock()
    # Pages of few bytes, so that some end by them.
    monkeypatch.setattr("cortado.store.server.kv_service.PAGE_BYTES_MAX", 9_000)

    async def compare() -> None:
        node = make_node(NodeDisk(open_lmdb(tmp_path / "data")), clock=clock)
        await node.start()
        try:
            kv = KeyValueService(node)
            times = await write(kv, draw, clock)
            # All is applied behind this. The versions that a page of the past passes by, and so its end, depend on
            # that.
            await kv.scan_page(kv_pb2.KvScanRequest(namespace=NAMESPACE))
            for _ in range(SCANS):
                request = a_request(draw, times)
                if not request.at.HasField("timestamp"):
                    # Without a time, each of the reads below would be at a time of its own.
                    request.at.wall_ms = clock.now_ms
                use_kernel(node, kernel)
                by_kernel = await pages_of(kv, request, packed=True)
                assert by_kernel == await pages_of(kv, request, packed=False)
                assert [pair for page in by_kernel for pair in page] == await streamed(kv, request)
                use_kernel(node, None)
                by_python = await pages_of(kv, request, packed=True)
                assert by_python == await pages_of(kv, request, packed=False)
                assert [pair for page in by_kernel for pair in page] == [pair for page in by_python for pair in page]
        finally:
            await node.stop()

    asyncio.run(compare())


def test_the_kernel_cuts_the_keys_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would compare one way with itself."""
    cuts: list[int] = []
    monkeypatch.setattr(kv_scan, "user_keys_of", lambda _namespace, keys: cuts.append(len(keys)))

    async def read() -> list[list[Pair]]:
        node = make_node(NodeDisk(open_lmdb(tmp_path / "data")), clock=SetClock())
        await node.start()
        kv = KeyValueService(node)
        for key in (b"a\0b", b"c", b"\0\xff\0"):
            await kv.put(kv_pb2.KvPutRequest(namespace=NAMESPACE, key=key, value=b"v"))
        use_kernel(node, row_kernel())
        pages = await pages_of(kv, kv_pb2.KvScanRequest(namespace=NAMESPACE), packed=True)
        await node.stop()
        return pages

    [page] = asyncio.run(read())
    assert [key for key, _, _ in page] == [b"\0\xff\0", b"a\0b", b"c"]
    assert not cuts
