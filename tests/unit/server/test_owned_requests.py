"""Request ids and idempotency keys are a principal's own: no other one is told an answer by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado.errors import InvalidArgument, PermissionDenied
from cortado.proto.v1 import transactions_pb2
from cortado.store.auth.owners import keys_namespace
from cortado.store.client import Client
from cortado.store.client.blocking.drive import run
from support.memory_engine import MemoryEngine
from support.served_node import served_node

GRANTS = {
    "alice": ("writer", "namespace:shared"),
    "mallory": ("writer", "namespace:shared"),
    "reader": ("reader", "namespace:shared"),
}
REFUSED = "request_id: was used for another request before"


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, Client]]:
    with served_node(MemoryEngine()) as served:
        with Client(served.endpoint) as anybody:
            tokens = {name: anybody.admin.auth.create(name).token for name in GRANTS}
            for name, (role, resource) in GRANTS.items():
                anybody.admin.auth.grant(name, role, resource)
            anybody.admin.auth.enable("root")
        made = {name: Client(served.endpoint, token=token.text) for name, token in tokens.items() if token is not None}
        yield made
        for each in made.values():
            each.close()


def settle(client: Client, request_id: bytes) -> Any:
    connection = client._core._connection
    request = transactions_pb2.SettleRequest(request_id=request_id)
    return run(connection.call(connection.stubs.transactions.Settle, request, timeout_s=5.0))


def test_the_answer_to_a_request_id_is_its_principals_alone(clients: dict[str, Client]) -> None:
    alice, mallory = clients["alice"], clients["mallory"]
    request_id = alice.new_request_id()
    first = alice.with_request_id(request_id).kv("shared").add(b"n", 1)
    with pytest.raises(InvalidArgument, match=REFUSED):
        mallory.with_request_id(request_id).kv("shared").add(b"n", 1)
    assert alice.with_request_id(request_id).kv("shared").add(b"n", 1) == first


def test_the_outcome_of_a_request_id_is_its_principals_alone(clients: dict[str, Client]) -> None:
    alice, mallory = clients["alice"], clients["mallory"]
    done, cancelled = alice.new_request_id(), alice.new_request_id()
    alice.with_request_id(done).kv("shared").put(b"settled", b"1")
    assert settle(alice, done).happened and not settle(alice, cancelled).happened
    for each in (done, cancelled):
        with pytest.raises(InvalidArgument, match=REFUSED):
            settle(mallory, each)
    with pytest.raises(InvalidArgument, match=REFUSED):
        mallory.with_request_id(cancelled).kv("shared").put(b"settled", b"2")


def test_a_request_of_a_time_without_roles_is_repeated_with_them_and_the_other_way_round() -> None:
    with served_node(MemoryEngine()) as served, Client(served.endpoint) as anybody:
        before, during = anybody.new_request_id(), anybody.new_request_id()
        assert anybody.with_request_id(before).kv("n").add(b"a", 1) == 1
        token = anybody.admin.auth.enable("root").token
        assert token is not None
        with Client(served.endpoint, token=token.text) as root:
            assert root.with_request_id(before).kv("n").add(b"a", 1) == 1
            assert root.with_request_id(during).kv("n").add(b"a", 1) == 2
            root.admin.auth.disable()
        assert anybody.with_request_id(during).kv("n").add(b"a", 1) == 2
        assert anybody.kv("n").add(b"a", 1) == 3


@pytest.mark.parametrize(
    "reach",
    [lambda kv: kv.get(b"key"), lambda kv: list(kv.scan()), lambda kv: kv.put(b"key", b"x")],
    ids=["get", "scan", "put"],
)
def test_a_principal_that_may_write_has_a_namespace_of_keys_that_is_its_own(
    clients: dict[str, Client], reach: Callable[[Any], object]
) -> None:
    own = keys_namespace("alice")
    clients["alice"].kv(own).put(b"key", b"id")
    reach(clients["alice"].kv(own))
    for name, namespace in (("mallory", own), ("reader", own), ("reader", keys_namespace("reader"))):
        with pytest.raises(PermissionDenied):
            reach(clients[name].kv(namespace))
