"""The raw calls that list, drop and undrop namespaces: their refusals, repeated calls, pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from cortado import errors
from cortado.proto.v1 import common_pb2, kv_pb2
from cortado.store.client import Client
from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.keys.keyspace import namespaces_range
from cortado.store.mvcc.paging import PageToken, encode_token, request_shape
from cortado.store.server.convert import read_at_text
from support.server_process import ServerProcess
from support.wire import Wire, refused

pytestmark = pytest.mark.process

PAIRS = 5


@pytest.fixture
def wire(server: ServerProcess) -> Wire:
    return Wire(server.endpoint)


@pytest.fixture
def name(wire: Wire, database: str) -> str:
    for number in range(PAIRS):
        wire.kv.Put(kv_pb2.KvPutRequest(namespace=database, key=b"%d" % number, value=b"v"))
    return database


def request_id(client: Client) -> bytes:
    return bytes(client.now()) + os.urandom(8)


@pytest.mark.parametrize("namespace", ["", "-x", "a b", "n" * 65, "n\0", "é"])
def test_what_is_no_name_is_refused(wire: Wire, namespace: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: wire.kv.DropNamespace(kv_pb2.DropNamespaceRequest(namespace=namespace)),
        lambda: wire.kv.UndropNamespace(kv_pb2.UndropNamespaceRequest(namespace=namespace, number=1)),
    ]
    for call in calls:
        error = refused(call)
        assert isinstance(error, errors.InvalidArgument)
        assert error.field == "namespace"


@pytest.mark.parametrize("size", [1, 19, 21, 60_000])
def test_a_request_id_of_another_size_is_refused_and_drops_nothing(wire: Wire, name: str, size: int) -> None:
    request = kv_pb2.DropNamespaceRequest(namespace=name, request_id=bytes(size))
    error = refused(lambda: wire.kv.DropNamespace(request))
    assert isinstance(error, errors.InvalidArgument)
    assert wire.kv.Get(kv_pb2.KvGetRequest(namespace=name, key=b"1")).pair.etag


def test_each_call_twice_has_one_effect(wire: Wire, client: Client, name: str) -> None:
    drop = kv_pb2.DropNamespaceRequest(namespace=name, request_id=request_id(client))
    first = wire.kv.DropNamespace(drop)
    wire.kv.Put(kv_pb2.KvPutRequest(namespace=name, key=b"new", value=b"v"))
    assert wire.kv.DropNamespace(drop) == first
    wire.kv.Delete(kv_pb2.KvDeleteRequest(namespace=name, key=b"new"))
    undrop = kv_pb2.UndropNamespaceRequest(namespace=name, request_id=request_id(client))
    assert wire.kv.UndropNamespace(undrop) == wire.kv.UndropNamespace(undrop)
    assert len(wire.kv.ScanPage(kv_pb2.KvScanRequest(namespace=name)).pairs) == PAIRS


def test_namespaces_are_listed_page_by_page_at_the_time_of_the_first(wire: Wire, database: str) -> None:
    names = [f"{database}-{number}" for number in range(5)]
    for each in names:
        wire.kv.Put(kv_pb2.KvPutRequest(namespace=each, key=b"k", value=b"v"))
    found: list[str] = []
    request = kv_pb2.ListNamespacesRequest(page_size=2)
    while True:
        page = wire.kv.ListNamespaces(request)
        assert len(page.namespaces) <= 2
        found += page.namespaces
        request.page_token = page.next_page_token
        if not request.page_token:
            break
        if found[-1] < names[-1]:
            wire.kv.Put(kv_pb2.KvPutRequest(namespace=f"{names[-1]}-later", key=b"k", value=b"v"))
    assert [each for each in found if each.startswith(f"{database}-")] == names
    assert found == sorted(set(found))


FORGED = [
    b"k",
    b"k\x30",
    b"k\x30n\0\1",
    b"k\x30n\0\1\0\0\0\0",
    b"k\x30\xff\xff\0\1",
    b"k" + b"\xff" * 700,
    b"",
    b"m",
    b"z",
]


@pytest.mark.parametrize("resume", FORGED)
@pytest.mark.parametrize("ts", [ZERO, LARGEST, None])
def test_a_forged_token_opens_nothing_else(wire: Wire, name: str, resume: bytes, ts: Timestamp | None) -> None:
    header = wire.kv.Get(kv_pb2.KvGetRequest(namespace=name, key=b"1")).header.timestamp
    newest = Timestamp(header.epoch, header.wall_ms, header.logical)
    shape = request_shape("namespaces", read_at_text(common_pb2.ReadAt()))
    request = kv_pb2.ListNamespacesRequest(page_token=encode_token(PageToken(ts or newest, resume), shape))
    start, end = namespaces_range()
    if start <= resume <= end and ts is not LARGEST:
        assert all(map(str.isascii, wire.kv.ListNamespaces(request).namespaces))
    else:
        assert isinstance(refused(lambda: wire.kv.ListNamespaces(request)), errors.InvalidArgument)


def test_the_pages_of_a_scan_go_on_at_the_time_of_the_first(wire: Wire, name: str) -> None:
    request = kv_pb2.KvScanRequest(namespace=name, page_size=2)
    page = wire.kv.ScanPage(request)
    found = [each.key for each in page.pairs]
    wire.kv.DropNamespace(kv_pb2.DropNamespaceRequest(namespace=name))
    wire.kv.Put(kv_pb2.KvPutRequest(namespace=name, key=b"0", value=b"of another life"))
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = wire.kv.ScanPage(request)
        found += [each.key for each in page.pairs]
    assert found == [b"%d" % number for number in range(PAIRS)]
    request.ClearField("page_token")
    assert [each.value for each in wire.kv.ScanPage(request).pairs] == [b"of another life"]
