"""A leader that is cut off from the others, but not from clients, answers nothing that could be out of date."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from cortado.errors import CortadoError, TryAgain
from cortado.proto.v1 import common_pb2, kv_pb2, kv_pb2_grpc
from cortado.store.client import Client
from cortado.store.client.values import timestamp_to_proto
from support.cluster import Cluster
from support.grpc_errors import from_rpc_error

pytestmark = pytest.mark.process

KEY = b"key"


class Asked(threading.Thread):
    """Asks one node, and no other, for a linearizable get and for conditional puts, until told to stop.

    ``gets`` has when each began, and the value; ``refusals`` when a put began whose condition, it said, does not hold.
    """

    def __init__(self, address: str, namespace: str) -> None:
        super().__init__(daemon=True)
        self._channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._stub = kv_pb2_grpc.KeyValueStub(self._channel)  # type: ignore[no-untyped-call]
        self._namespace = namespace
        self._stop_event = threading.Event()
        self.gets: list[tuple[float, bytes]] = []
        self.refusals: list[float] = []
        self.problems: list[BaseException] = []

    def run(self) -> None:
        while not self._stop_event.wait(0.005):
            try:
                self._get()
                self._put_if(b"second")
            except BaseException as problem:
                self.problems.append(problem)
                return

    def stop(self) -> None:
        self._stop_event.set()
        self.join()
        self._channel.close()

    def _get(self) -> None:
        began = time.monotonic()
        try:
            reply = self._stub.Get(kv_pb2.KvGetRequest(namespace=self._namespace, key=KEY), timeout=1.0)
        except grpc.RpcError as error:
            assert _says_nothing(from_rpc_error(error)), error
        else:
            self.gets.append((began, reply.pair.value))

    def _put_if(self, expected: bytes) -> None:
        began = time.monotonic()
        request = kv_pb2.KvPutRequest(
            namespace=self._namespace, key=KEY, value=b"third", condition=common_pb2.Condition(value=expected)
        )
        try:
            self._stub.Put(request, timeout=1.0)
        except grpc.RpcError as error:
            translated = from_rpc_error(error)
            if translated.reason == "CONDITION_FAILED":
                self.refusals.append(began)
            else:
                assert _says_nothing(translated), error


def value_of(client: Client, namespace: str) -> bytes | None:
    found = client.kv(namespace).get(KEY)
    return None if found is None else found.value


def refused_read(address: str, namespace: str) -> CortadoError:
    """Return one node's answer to a linearizable read by a plain stub: our client would go to the leader."""
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = kv_pb2_grpc.KeyValueStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.RpcError) as refused:
            stub.Get(kv_pb2.KvGetRequest(namespace=namespace, key=b"another key"), timeout=1.5)
    return from_rpc_error(refused.value)


def _says_nothing(error: CortadoError) -> bool:
    """Whether the node says only that it cannot answer."""
    return isinstance(error, TryAgain) or error.reason in ("DEADLINE_EXCEEDED", "OUTCOME_UNKNOWN")


@contextmanager
def asked(address: str, namespace: str) -> Iterator[Asked]:
    asking = Asked(address, namespace)
    asking.start()
    try:
        yield asking
    finally:
        asking.stop()
    assert asking.problems == []


def test_a_cut_off_leader_never_answers_a_read_nor_refuses_from_what_is_no_longer_true(three_nodes: Cluster) -> None:
    old = three_nodes.leader()
    others = [address for name, address in three_nodes.addresses.items() if name != old]
    with Client(others, timeout_s=30) as client, asked(three_nodes.addresses[old], "cut-off") as asking:
        kv = client.kv("cut-off")
        kv.put(KEY, b"first")
        three_nodes.cut(old)
        three_nodes.leader(besides=[old])
        kv.put(KEY, b"second")
        second_written = time.monotonic()
        assert value_of(client, "cut-off") == b"second"

        assert _says_nothing(refused_read(three_nodes.addresses[old], "cut-off"))
        three_nodes.heal()
        three_nodes.wait_converged()
        assert value_of(client, "cut-off") == b"second"
    assert asking.gets, "it answered while it led"
    assert asking.refusals, "it refused while it led"
    assert [value for began, value in asking.gets if began > second_written and value == b"first"] == []
    # The condition holds from then on.
    assert [began for began in asking.refusals if began > second_written] == []


def test_a_node_that_is_cut_off_serves_what_may_be_old_and_nothing_else(three_nodes: Cluster) -> None:
    follower = three_nodes.follower()
    with Client(three_nodes.endpoints, timeout_s=30) as client:
        client.kv("old").put(b"k", b"v")
        three_nodes.wait_converged()
        at = client.now()
        three_nodes.cut(follower)
        assert three_nodes.contents(follower, "old", timestamp_to_proto(at)) == {b"k": b"v"}
        assert _says_nothing(refused_read(three_nodes.addresses[follower], "old"))
    three_nodes.mend()


def test_writes_without_a_majority_end_as_unknown_or_refused_and_may_be_repeated(three_nodes: Cluster) -> None:
    leader = three_nodes.leader()
    others = [name for name in three_nodes.nodes if name != leader]
    three_nodes.kill(*others)
    with Client(three_nodes.addresses[leader], timeout_s=1) as client:
        with pytest.raises(CortadoError) as refused:
            client.kv("alone").put(b"k", b"v")
        assert _says_nothing(refused.value), refused.value
    three_nodes.mend()
    with Client(three_nodes.endpoints, timeout_s=30) as client:
        client.kv("alone").put(b"k", b"w")
        found = client.kv("alone").get(b"k")
        assert found is not None
        assert found.value == b"w"
