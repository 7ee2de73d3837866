"""Bits that turn in the ids of remembered requests: no write happens twice for it, and none is refused for ever.

The ids are flipped in the data file of a stopped server. If a record no longer lies under its id, a search finds
nothing, which must not count as "never seen".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from cortado.errors import OutcomeUnknown
from cortado.proto.v1 import kv_pb2, kv_pb2_grpc
from cortado.store.client import Client
from cortado.store.engine.interface import Space
from support.cluster import cortado, running_cluster
from support.engines import open_made
from support.flips import flip_bit, leaf_places_of
from support.grpc_errors import from_rpc_error
from support.server_process import ServerProcess, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

GROUP = (1).to_bytes(4)
IN_GROUP, IN_EPOCH, IN_TIME, IN_RANDOM = 3, 8 * 4 + 4, 8 * 10 + 6, 8 * 20 + 1
"""Bits of a stored id: of its prefix, of its timestamp, and of its random end, which seldom changes its place."""


def put_once(stub: kv_pb2_grpc.KeyValueStub, request_id: bytes, key: bytes) -> str:
    """Put a value once, and return the etag. Raises the server's error."""
    try:
        request = kv_pb2.KvPutRequest(namespace="n", key=key, value=b"once", request_id=request_id)
        return str(stub.Put(request, timeout=10).etag)
    except grpc.RpcError as refused:
        raise from_rpc_error(refused) from None


def remember(endpoint: str, count: int) -> dict[bytes, tuple[bytes, str]]:
    """The key and the etag of so many puts, by their request ids."""
    found = {}
    with Client(endpoint) as client, grpc.insecure_channel(endpoint) as channel:
        client.kv("n").put(b"earlier", b"v")
        for number in range(count):
            request_id, key = bytes(client.now()) + number.to_bytes(8), b"k%d" % number
            found[request_id] = key, put_once(kv_pb2_grpc.KeyValueStub(channel), request_id, key)
        # The last ones are not those that are damaged: behind them new ids begin.
        client.kv("n").put(b"later", b"v")
    return found


def turn(data_dir: Path, request_id: bytes, bit: int) -> None:
    data_file = data_dir / "engine" / "data.mdb"
    flip_bit(data_file, leaf_places_of(data_file, GROUP + request_id), bit)


def repeat(endpoint: str, made: dict[bytes, tuple[bytes, str]]) -> int:
    """How many are not remembered any more. None is done again."""
    unknown = 0
    with grpc.insecure_channel(endpoint) as channel:
        for request_id, (key, etag) in made.items():
            try:
                assert put_once(kv_pb2_grpc.KeyValueStub(channel), request_id, key) == etag
            except OutcomeUnknown as refused:
                assert "damaged" in str(refused)
                unknown += 1
    return unknown


def is_served(client: Client) -> bool:
    """Ids of the last seconds before the start are in doubt, too, where clocks may differ by so much."""
    try:
        client.kv("n").put(b"new", b"v")
    except OutcomeUnknown as refused:
        assert "damaged" in str(refused)
        return False
    return True


@pytest.mark.parametrize("bit", [IN_GROUP, IN_EPOCH, IN_TIME, IN_RANDOM])
def test_a_request_that_damage_hides_is_never_done_again_and_new_ones_are_served(tmp_path: Path, bit: int) -> None:
    server = ServerProcess(tmp_path / "data", "--max-clock-offset-ms", "200")
    try:
        made = remember(server.start().endpoint, 8)
        assert server.stop() == 0
        turn(server.data_dir, list(made)[3], bit)
        endpoint = server.start().endpoint
        assert 1 <= repeat(endpoint, made) <= len(made)
        with Client(endpoint, timeout_s=1) as client:
            for key, etag in made.values():
                found = client.kv("n").get(key)
                assert found is not None
                assert found.etag == etag
            wait_until(lambda: is_served(client), "new requests are served")
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        server.kill()


@pytest.mark.parametrize("bit", [IN_GROUP, IN_EPOCH, IN_TIME, IN_RANDOM])
def test_the_loss_of_a_remembered_request_is_accepted_by_forgetting_all_that_it_may_be(
    tmp_path: Path, bit: int
) -> None:
    server = ServerProcess(tmp_path / "data", "--max-clock-offset-ms", "200")
    try:
        made = remember(server.start().endpoint, 8)
        assert server.stop() == 0
        turn(server.data_dir, list(made)[3], bit)
        endpoint = server.start().endpoint
        with Client(endpoint, timeout_s=1) as client:
            wait_until(lambda: is_served(client), "what is in doubt lies in the past")
            wait_until(lambda: all(each.is_lost for each in client.status().damage), "it is known to be lost")
            (lost,) = {each.key.hex() for each in client.status().damage if each.key}
            assert "accepted the loss" in cortado("damage", "accept", lost, "--yes", "-e", endpoint)
            wait_until(lambda: not client.status().damaged, "nothing is damaged")
            client.kv("n").put(b"newer", b"v")
        with grpc.insecure_channel(endpoint) as channel:
            request_id, (key, _) = list(made.items())[3]
            with pytest.raises(OutcomeUnknown, match="too old"):
                put_once(kv_pb2_grpc.KeyValueStub(channel), request_id, key)
        assert server.stop() == 0
        assert GROUP + request_id not in remembered(server.data_dir)
        assert bytes.fromhex(lost) not in remembered(server.data_dir)
        assert server.start().stop() == 0
        assert "damaged here" not in server.log.split("serving")[-1]
    finally:
        server.kill()


def remembered(data_dir: Path) -> Sequence[bytes]:
    engine = open_made(data_dir)
    with engine.read() as txn:
        found = [key for key, _ in txn.walk(Space.REQUESTS, b"\0")]
    engine.close()
    return found


@pytest.mark.parametrize("bit", [IN_GROUP, IN_EPOCH, IN_TIME])
@pytest.mark.parametrize("place", [0, 5])
def test_no_id_that_damage_took_to_the_future_becomes_the_floor(tmp_path: Path, place: int, bit: int) -> None:
    server = ServerProcess(tmp_path / "data", "--limit.remember-requests-max", "400")
    try:
        with Client(server.start().endpoint) as client:
            for number in range(400):
                client.kv("n").put(b"k%d" % number, b"v")
        assert server.stop() == 0
        turn(server.data_dir, remembered(server.data_dir)[place].removeprefix(GROUP), bit)
        with Client(server.start().endpoint) as client:
            # From there all ids would be too old, for ever, and on every replica. Fewer than are remembered: ids of one
            # moment have no order, so of more than that a new one may be below the floor.
            for number in range(300):
                client.kv("n").put(b"k%d" % number, b"w")
            # The damaged results are forgotten when their time is over.
            wait_until(lambda: not client.status().damaged, "nothing is damaged")
        assert server.stop() == 0
        assert len(remembered(server.data_dir)) < 450
    finally:
        server.kill()


@pytest.mark.parametrize("bit", [IN_GROUP, IN_EPOCH, IN_RANDOM])
def test_a_replica_that_lost_a_remembered_request_has_it_again(tmp_path: Path, bit: int) -> None:
    with running_cluster(tmp_path) as cluster:
        made = remember(cluster.addresses[cluster.leader()], 8)
        cluster.wait_converged()
        victim = cluster.leader()
        assert cluster.nodes[victim].stop() == 0
        turn(cluster.nodes[victim].data_dir, list(made)[3], bit)
        cluster.start(victim)
        cluster.wait_converged()
        wait_until(lambda: not any(each.damaged for each in cluster.statuses().values()), "all are whole")
        cortado("member", "transfer-leader", victim, "-e", cluster.endpoints)
        with Client(cluster.endpoints) as client:
            client.now()  # Once the new leader is ready.
        assert repeat(cluster.addresses[victim], made) == 0
