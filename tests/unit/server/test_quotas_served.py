"""Quotas over a real port: refused calls, waiting calls, and calls that are never refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from cortado.errors import InvalidArgument, NotFound, PermissionDenied, QuotaExceeded, Unauthenticated
from cortado.proto.v1 import kv_pb2, kv_pb2_grpc, quotas_pb2, quotas_pb2_grpc
from cortado.store.client import Client, Index, Put
from cortado.store.quotas.quota import Target
from cortado.store.wire.rpc_errors import DETAILS_KEY
from support.engines import open_lmdb
from support.grpc_errors import from_rpc_error
from support.served_node import Served, served_node
from support.server_process import wait_until

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "t", "type": "string"}]}'


@dataclass
class World:
    served: Served
    client: Client
    audit: Path

    def set(self, target: str, **limits: int) -> None:
        """Set a quota and wait until it holds, with a full bucket."""
        self.client.admin.quotas.set(target, **limits)
        self.look()
        assert self.served.metering.meters.by_target[Target(target)].quota.target == target

    def remove(self, target: str) -> None:
        self.client.admin.quotas.remove(target)
        self.look()

    def look(self) -> None:
        """Look at the applied state, now."""

        async def look() -> None:
            replica = self.served.node.meta
            await replica.reads.applied_to(replica.read_ts())
            self.served.metering.look()

        self.served.call(look())

    def measure(self) -> None:
        async def measure() -> None:
            replica = self.served.node.meta
            await replica.reads.applied_to(replica.read_ts())
            await self.served.metering.measure_all()

        self.served.call(measure())

    def full_ms(self, namespace: str) -> float:
        """Return when the namespace has a second's worth again."""
        bucket = self.served.metering.meters.by_target[Target(f"namespace:{namespace}")].bytes
        assert bucket is not None
        return bucket.full_ms

    def owed_ms(self, namespace: str) -> float:
        """Return how long it takes until then."""
        return self.full_ms(namespace) - self.served.node.process.monotonic_ms()

    def impatient(self, **options: Any) -> Client:
        """Return a client that is told at once if it would have to wait for longer than four seconds."""
        return Client(self.served.endpoint, timeout_s=4, **options)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    path = tmp_path_factory.mktemp("quotas")
    with served_node(open_lmdb(path / "data"), path / "audit") as served, Client(served.endpoint) as client:
        client.create_database("shop")
        client.schemas.register("shop.orders", SCHEMA)
        client.create_table("shop.orders", key=["id"])
        yield World(served, client, path / "audit")


NAMES = (f"n{number}" for number in count())


@pytest.fixture
def namespace(world: World) -> str:
    """Return a namespace of the test's own."""
    name = next(NAMES)
    world.client.kv(name).put(b"k", b"v")
    return name


@pytest.fixture(autouse=True)
def _without_quotas(world: World) -> Iterator[None]:
    """Remove, with each test, the quotas that it made."""
    yield
    with suppress(Unauthenticated):  # Behind the last one.
        for each in world.client.admin.quotas.all():
            world.remove(each.target)


def test_a_refusal_says_which_quota_and_how_long(world: World, namespace: str) -> None:
    world.set(f"namespace:{namespace}", calls_per_second=1)
    stub = kv_pb2_grpc.KeyValueStub(grpc.insecure_channel(world.served.endpoint))
    request = kv_pb2.KvPutRequest(namespace=namespace, key=b"k", value=b"w")
    stub.Put(request)
    with pytest.raises(grpc.RpcError) as refused:
        for _ in range(100):
            stub.Put(request)
    error = from_rpc_error(refused.value)
    assert isinstance(error, QuotaExceeded)
    assert (error.quota, error.resource, error.limit) == (f"namespace:{namespace}", "calls_per_second", 1)
    assert 0 < error.retry_delay_ms <= 1_000
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    status = status_pb2.Status.FromString(dict(refused.value.trailing_metadata())[DETAILS_KEY])
    assert any(each.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for each in status.details)


def test_a_client_waits_and_goes_on_within_its_time(world: World, namespace: str) -> None:
    target = f"namespace:{namespace}"
    world.set(target, calls_per_second=1)
    pairs = world.client.kv(namespace)
    # A slow machine keeps within the quota for a while.
    for number in count():
        pairs.put(b"k", b"%d" % number)
        if world.client.admin.quotas.get(target).refused:
            break
    found = pairs.get(b"k")
    assert found is not None
    assert found.value == b"%d" % number


def test_a_client_without_the_time_is_told_and_nothing_was_done(world: World, namespace: str) -> None:
    world.set(f"namespace:{namespace}", bytes_per_second=100)
    with world.impatient() as client:
        world.client.kv(namespace).put(b"k", bytes(5_000))
        with pytest.raises(QuotaExceeded) as refused:
            client.kv(namespace).put(b"k", b"late")
    assert refused.value.retry_delay_ms > 10_000
    world.remove(f"namespace:{namespace}")
    found = world.client.kv(namespace).get(b"k")
    assert found is not None
    assert found.value == bytes(5_000)


def test_replies_count_too(world: World, namespace: str) -> None:
    world.client.kv(namespace).put(b"large", bytes(20_000))
    world.set(f"namespace:{namespace}", bytes_per_second=200)
    with world.impatient() as client:
        world.client.kv(namespace).get(b"large")
        with pytest.raises(QuotaExceeded) as refused:
            client.kv(namespace).get(b"large")
    assert refused.value.retry_delay_ms > 10_000


def test_a_scan_is_slowed_and_comes_to_its_end(world: World, namespace: str) -> None:
    pairs = world.client.kv(namespace)
    pairs.batch([Put(b"k%04d" % number, bytes(1_000)) for number in range(100)])
    world.set(f"namespace:{namespace}", bytes_per_second=100_000)
    began_ms = world.served.node.process.monotonic_ms()
    assert len(list(pairs.scan())) == 101
    # All of it was counted: 100 kB and more take a second, however fast they came.
    assert world.full_ms(namespace) >= began_ms + 1_000


def test_what_the_last_message_owes_delays_no_end(world: World, namespace: str) -> None:
    world.client.kv(namespace).put(b"k", bytes(100_000))
    world.set(f"namespace:{namespace}", bytes_per_second=100)
    assert len(list(world.client.kv(namespace).scan())) == 1
    assert world.owed_ms(namespace) > 500_000


def test_a_bulk_load_is_slowed_and_comes_to_its_end(world: World) -> None:
    world.set("database:shop", bytes_per_second=400_000)
    rows = [{"id": number, "t": "x" * 1_000} for number in range(600)]
    assert world.client.table("shop.orders").put_many(rows, chunk_rows=100).written == 600


def test_who_waits_for_a_quota_that_is_taken_away_goes_on(world: World, namespace: str) -> None:
    """A scan that would last hours."""
    pairs = world.client.kv(namespace)
    for number in range(4):
        pairs.put(b"l%d" % number, bytes(900_000))
    world.set(f"namespace:{namespace}", bytes_per_second=100)
    with Client(world.served.endpoint, timeout_s=60) as client:
        found = client.kv(namespace).scan()
        next(found)
        for _ in range(100):
            client.status()
        # One of the replies was sent, and its time is owed; the next one would double it.
        assert 8_000_000 < world.owed_ms(namespace) < 20_000_000
        world.remove(f"namespace:{namespace}")
        assert len(list(found)) == 4


def test_changes_of_quotas_and_what_an_operator_does_are_never_refused(world: World, namespace: str) -> None:
    world.set(f"namespace:{namespace}", bytes_per_second=1)
    world.set("database:shop", bytes_per_second=1)
    world.client.kv(namespace).put(b"k", bytes(1_000))
    world.client.table("shop.orders").put({"id": 1, "t": "x" * 1_000})
    with world.impatient() as client:
        for read in (lambda: client.kv(namespace).get(b"k"), lambda: client.table("shop.orders").get(1)):
            with pytest.raises(QuotaExceeded):
                read()
        for _ in range(20):
            client.admin.quotas.set(f"namespace:{namespace}", bytes_per_second=1)
            client.admin.quotas.get(f"namespace:{namespace}")
            client.admin.quotas.all()
            client.status()
            client.clock()
            client.databases()
            client.namespaces()
            client.describe("shop.orders")
            client.schemas.compatibility("shop.orders")
            client.schemas.test_compatibility("shop.orders", SCHEMA)
            client.schemas.get("shop.orders")
            client.schemas.versions("shop.orders")


def test_no_more_is_added_where_it_is_full_and_what_frees_goes_on(world: World) -> None:
    client, orders = world.client, world.client.table("shop.orders")
    for number in range(20):
        orders.put({"id": number, "t": "y" * 100})
    world.set("database:shop", stored_bytes=1_000)
    world.measure()
    shown = client.admin.quotas.get("database:shop")
    assert shown.used_bytes is not None
    assert shown.used_bytes > 2_000
    with world.impatient() as late:
        table = late.table("shop.orders")
        adding: list[Callable[[], object]] = [
            lambda: table.put({"id": 1, "t": ""}),
            lambda: table.update(1, {"t": "z"}),
            lambda: table.put_many([{"id": 2, "t": ""}]),
            lambda: late.create_index("shop.orders", Index("by_t", ["t"])),
        ]
        for act in adding:
            with pytest.raises(QuotaExceeded) as refused:
                act()
            assert (refused.value.quota, refused.value.resource) == ("database:shop", "stored_bytes")
        with pytest.raises(QuotaExceeded), late.transaction() as transaction:
            transaction.table("shop.orders").put({"id": 1, "t": ""})
    with client.transaction() as transaction:
        transaction.table("shop.orders").delete(3)
    assert orders.get(1) is not None
    orders.delete(1)
    assert len(list(orders.scan(limit=5))) == 5
    client.truncate_table("shop.orders")
    world.remove("database:shop")
    orders.put({"id": 1, "t": ""})


def test_a_load_that_fills_it_ends_and_says_why(world: World) -> None:
    world.set("database:shop", stored_bytes=100_000)

    def rows() -> Iterator[dict[str, Any]]:
        for number in range(10_000):
            if number and number % 1_000 == 0:
                world.measure()
            yield {"id": number, "t": "z" * 100}

    with world.impatient() as late, pytest.raises(QuotaExceeded) as refused:
        late.table("shop.orders").put_many(rows(), chunk_rows=200)
    assert (refused.value.quota, refused.value.resource) == ("database:shop", "stored_bytes")
    world.client.truncate_table("shop.orders")


def test_what_was_never_there_is_measured_as_nothing(world: World) -> None:
    world.set("database:later", stored_bytes=1)
    world.measure()
    assert world.client.admin.quotas.get("database:later").used_bytes == 0


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({}, "quota"),
        ({"calls_per_second": 0}, "calls_per_second"),
        ({"calls_per_second": -1}, "calls_per_second"),
        ({"calls_per_second": 1.5}, "calls_per_second"),
        ({"calls_per_second": float("nan")}, "calls_per_second"),
        ({"calls_per_second": True}, "calls_per_second"),
        ({"bytes_per_second": 1 << 100}, "bytes_per_second"),
        ({"bytes_per_second": 1 << 41}, "bytes_per_second"),
        ({"stored_bytes": "1GiB"}, "stored_bytes"),
    ],
)
def test_what_is_no_limit_is_refused(world: World, limits: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        world.client.admin.quotas.set("database:shop", **limits)
    assert refused.value.field == field
    assert world.client.admin.quotas.all() == []
    with pytest.raises(NotFound):
        world.client.admin.quotas.get("database:shop")
    with pytest.raises(NotFound):
        world.client.admin.quotas.remove("database:shop")


def test_lists_come_in_pages(world: World) -> None:
    for number in range(5):
        world.client.admin.quotas.set(f"namespace:p{number}", calls_per_second=7)
    stub = quotas_pb2_grpc.QuotasStub(grpc.insecure_channel(world.served.endpoint))
    found, token = [], b""
    while True:
        reply = stub.List(quotas_pb2.ListQuotasRequest(page_size=2, page_token=token))
        found += [each.quota.target for each in reply.quotas]
        token = reply.next_page_token
        if not token:
            break
    assert found == [f"namespace:p{number}" for number in range(5)]


def test_a_principal_has_its_own_and_another_one_too(world: World) -> None:
    """Last: from here on the cluster has roles."""
    token = world.client.admin.auth.enable("root").token
    assert token is not None
    with Client(world.served.endpoint, token=token.text) as admin:
        tokens = {}
        for name in ("app", "other"):
            issued = admin.admin.auth.create(name).token
            assert issued is not None
            admin.admin.auth.grant(name, "writer", "namespace:carts")
            tokens[name] = issued.text
        admin.admin.quotas.set("principal:app", bytes_per_second=1)
        admin.admin.quotas.set("principal:root", bytes_per_second=1)
        world.look()
        patient = Client(world.served.endpoint, token=tokens["other"])
        with world.impatient(token=tokens["app"]) as app, patient as other:
            with pytest.raises(QuotaExceeded) as refused:
                for _ in range(2):
                    app.kv("carts").put(b"k", bytes(1_000))
            assert refused.value.quota == "principal:app"
            for _ in range(50):
                other.kv("carts").put(b"k", b"v")
            with pytest.raises(PermissionDenied):
                app.admin.quotas.set("principal:app", bytes_per_second=1_000_000)
            with pytest.raises(PermissionDenied):
                app.admin.quotas.all()
        # An admin that has used up its own quota can raise it.
        with world.impatient(token=token.text) as root:
            with pytest.raises(QuotaExceeded):
                for _ in range(2):
                    root.kv("carts").get(b"k")
            root.admin.quotas.set("principal:root", bytes_per_second=1_000_000)
            world.look()
            for _ in range(50):
                root.kv("carts").get(b"k")
        # The principal is gone: the quota stays on the name.
        admin.admin.auth.revoke("app")
        assert [each.target for each in admin.admin.quotas.all()] == ["principal:app", "principal:root"]
        admin.admin.quotas.remove("principal:app")
    path = world.audit / "audit.log"

    def is_written() -> bool:
        lines = [json.loads(line) for line in path.read_text().splitlines() if "lines_missing" not in line]
        told = [(each["method"], each["principal"], each["about"], each["outcome"]) for each in lines]
        return ("Quotas/Remove", "root", "principal:app", "OK") in told

    wait_until(is_written, "it is in the audit")
