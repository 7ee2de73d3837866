"""Two groups on one host share its log files, its data and its threads, and nothing else."""

from __future__ import annotations

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import kv_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.safepoints import NO_SAFEPOINTS, SAFEPOINTS_KEY, Safepoints
from cortado.store.mvcc.seen import Reads, Seen
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.group_range import GroupRange
from support.memory_engine import MemoryEngine
from support.node_world import World
from support.simulation.groups import NAMESPACE, SECOND_NAMESPACE, TWO_GROUPS

RETENTION_MS = 10_000
FIRST, SECOND = kv_key(NAMESPACE, b"k"), kv_key(SECOND_NAMESPACE, b"k")


def put(key: LogicalKey, value: bytes) -> Evaluate:
    def evaluate(_reader: Reader, _ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        mutations.put(key, value)
        return Evaluation(mutations, value)

    return evaluate


def stored(node: Host, key: LogicalKey) -> int:
    """Return how many versions of a key lie in the engine."""
    with node.process.engine.read() as txn:
        return len(txn.page(Space.DATA, key, key + b"\xff" * 13, max_items=100).keys)


def value(node: Host, key: LogicalKey) -> bytes | None:
    replica = node.replica_of(key)
    version = replica.reader(replica.read_ts()).get(key)
    return None if version is None else version.payload


def test_each_group_has_a_log_of_its_own_and_a_restart_finds_both() -> None:
    world = World(groups=TWO_GROUPS)

    async def scenario() -> None:
        [node] = await world.grow("n1")
        assert [node.replica_of(each).group_id for each in (FIRST, SECOND)] == [1, 2]
        applied = [each.applied.index for each in node.replicas.values()]
        request = {"request_id": bytes(await node.meta.reads.linearize()) + bytes(8), "request_hash": b"h" * 16}
        for each in (FIRST, SECOND):
            written = await node.replica_of(each).write(put(each, b"of " + each[:4]), **request)
            assert not written.repeated, "each group remembers its own requests"
        await world.settled()
        assert [each.applied.index for each in node.replicas.values()] == [each + 1 for each in applied]
        world.places["n1"].crash()
        node = await world.places["n1"].start()
        assert [value(node, each) for each in (FIRST, SECOND)] == [b"of " + FIRST[:4], b"of " + SECOND[:4]]

    world.run(scenario)


def test_a_group_without_the_catalogue_is_not_collected_by_the_one_that_has_it() -> None:
    world = World(retention_ms=RETENTION_MS, groups=TWO_GROUPS)

    async def scenario() -> None:
        [node] = await world.grow("n1")
        for number in range(3):
            for each in (FIRST, SECOND):
                await node.replica_of(each).write(put(each, b"%d" % number))
        await world.until(lambda: stored(node, FIRST) == 1, "the old versions are gone", 4 * RETENTION_MS)
        await world.sleep(10 * RETENTION_MS)
        assert stored(node, SECOND) == 3
        first, second = node.replicas.values()
        assert first.store.safepoints != NO_SAFEPOINTS
        assert second.store.safepoints == NO_SAFEPOINTS

    world.run(scenario)


def test_a_group_without_the_catalogue_reads_none_of_it_for_itself() -> None:
    engine = MemoryEngine()
    safepoints = Safepoints(Timestamp(0, 500, 0), {})
    with engine.write() as txn:
        txn.put(Space.DATA, *encode_version(SAFEPOINTS_KEY, safepoints.encode(), Timestamp(0, 1_000, 0)))
    found = [StateMachine(engine, VersionStore(engine), each).safepoints for each in TWO_GROUPS]
    assert [each.cluster for each in found] == [Timestamp(0, 500, 0), ZERO]


def reads_within(of: GroupRange) -> Reads:
    seen = Seen(within=of.data)
    for each in (FIRST, SECOND, SAFEPOINTS_KEY):
        seen.note(each, b"x" * 12)
    seen.ranges = [(SECOND, FIRST), (SAFEPOINTS_KEY, LogicalKey(b"n"))]
    return seen.reads(1_000)


def test_an_entry_names_the_reads_of_its_own_group_alone() -> None:
    first, second = (reads_within(each) for each in TWO_GROUPS)
    bound = TWO_GROUPS[1].data[1]
    assert (first.keys, first.ranges) == ([FIRST, SAFEPOINTS_KEY], [(bound, FIRST), (SAFEPOINTS_KEY, b"n")])
    assert (second.keys, second.ranges) == ([SECOND], [(SECOND, bound)])
