"""Request ids: one effect, the first answer, and a floor below which ids are unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import ClockOutOfBounds, ConditionFailed, DataLoss, InvalidArgument, OutcomeUnknown
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.mvcc.store import VersionStore
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.controls import epoch_after
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.request_table.forgetting import Memory, Remembering, to_forget
from cortado.store.replica.write.request_table.records import Remembered, decode_remembered, encode_remembered
from support.engines import open_lmdb
from support.flips import flipped
from support.nodes import NodeDisk, SetClock, increment, read, run, running_node, until

HASH = b"h" * 16


def request_id(node: Host, number: int = 0) -> bytes:
    return bytes(node.meta.read_ts()) + number.to_bytes(8)


def test_the_same_request_again_has_no_effect_and_the_same_answer() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            id_ = request_id(node)
            first = await node.meta.write(
                increment("n"), request_id=id_, request_hash=HASH, encode_reply=lambda ts, n: f"{n}@{ts}".encode()
            )
            again = await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)
            assert (again.ts, again.reply, again.repeated) == (first.ts, first.reply, True)
            assert first.reply == f"1@{first.ts}".encode()
            assert read(node, "n") == b"1"

    run(scenario)


def test_it_is_remembered_over_a_restart() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            id_ = request_id(node)
            first = await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)
        async with running_node(disk) as node:
            again = await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)
            assert (again.ts, again.repeated) == (first.ts, True)
            assert read(node, "n") == b"1"

    run(scenario)


def test_a_retry_joins_the_first_call_while_that_is_in_flight_and_even_when_its_caller_has_left() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            id_ = request_id(node)
            disk.hold()
            first = asyncio.ensure_future(node.meta.write(increment("n"), request_id=id_, request_hash=HASH))
            await until(lambda: disk.held == 1, "the first call is being stored")
            again = asyncio.ensure_future(node.meta.write(increment("n"), request_id=id_, request_hash=HASH))
            await asyncio.sleep(0)
            first.cancel()
            disk.release()
            assert (await again).value == 1
            assert read(node, "n") == b"1"

    run(scenario)


@pytest.mark.parametrize("in_flight", [True, False])
def test_the_same_id_with_another_request_is_bad_input(in_flight: bool) -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            id_ = request_id(node)
            if in_flight:
                disk.hold()
            first = asyncio.ensure_future(node.meta.write(increment("n"), request_id=id_, request_hash=HASH))
            if in_flight:
                await until(lambda: disk.held == 1, "the first call is being stored")
            else:
                await first
            with pytest.raises(InvalidArgument, match="request_id: was used for another request"):
                await node.meta.write(increment("n"), request_id=id_, request_hash=b"x" * 16)
            disk.release()
            await first

    run(scenario)


def test_a_refusal_is_not_remembered() -> None:
    def refuse(reader: object, commit_ts: object) -> object:
        raise ConditionFailed("k", "absent", "present")

    async def scenario() -> None:
        async with running_node() as node:
            id_ = request_id(node)
            with pytest.raises(ConditionFailed):
                await node.meta.write(refuse, request_id=id_, request_hash=HASH)
            assert (await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)).value == 1

    run(scenario)


@pytest.mark.parametrize("length", [1, 12, 19, 21])
def test_a_malformed_id_is_bad_input(length: int) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            with pytest.raises(InvalidArgument, match="must have 20 bytes"):
                await node.meta.write(increment("n"), request_id=bytes(length), request_hash=HASH)

    run(scenario)


def test_an_id_from_beyond_the_clocks_bounds_is_refused_and_its_caller_told_to_take_another() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            now = node.process.clock.now()
            for beyond in (Timestamp(0, now.wall_ms + 1_001, 0), Timestamp(1, 0, 0)):
                with pytest.raises(ClockOutOfBounds, match=r"ahead of this cluster's.*take a new id"):
                    await node.meta.write(increment("n"), request_id=bytes(beyond) + bytes(8), request_hash=HASH)
            near = bytes(Timestamp(0, now.wall_ms + 1_000, 0)) + bytes(8)
            await node.meta.write(increment("n"), request_id=near, request_hash=HASH)

    run(scenario)


def test_what_was_forgotten_by_age_is_refused_as_too_old_and_never_executed_again() -> None:
    async def scenario() -> None:
        clock = SetClock()
        async with running_node(clock=clock, limits=NodeLimits(remember_ms=60_000)) as node:
            old = request_id(node)
            await node.meta.write(increment("n"), request_id=old, request_hash=HASH)
            await node.meta.reads.caught_up()
            clock.now_ms += 60_001
            # Only a later entry makes it forget: an idle group stays as it is.
            assert (await node.meta.write(increment("n"), request_id=old, request_hash=HASH)).repeated
            await node.meta.write(
                increment("n"), request_id=bytes(node.process.clock.now()) + bytes(8), request_hash=HASH
            )
            await node.meta.reads.caught_up()
            with pytest.raises(OutcomeUnknown, match="too old") as unknown:
                await node.meta.write(increment("n"), request_id=old, request_hash=HASH)
            assert unknown.value.request_id == old.hex()
            assert read(node, "n") == b"2"

    run(scenario)


def test_what_is_too_much_is_forgotten_oldest_first_and_the_floor_survives_a_restart() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        ids = []
        limits = NodeLimits(remember_requests_max=10)
        async with running_node(disk, limits=limits) as node:
            for number in range(15):
                ids.append(request_id(node, number))
                await node.meta.write(increment("n"), request_id=ids[-1], request_hash=HASH)
            await node.meta.reads.caught_up()
            assert node.meta.applied.requests == 10
        async with running_node(disk, limits=limits) as node:
            for id_ in ids[:5]:
                with pytest.raises(OutcomeUnknown, match="too old"):
                    await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)
            for id_ in ids[5:]:
                assert (await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)).repeated
            assert read(node, "n") == b"15"

    run(scenario)


def test_ids_of_the_last_epoch_are_remembered_in_the_new_one() -> None:
    async def scenario() -> None:
        clock = SetClock()
        async with running_node(clock=clock, limits=NodeLimits(remember_ms=60_000)) as node:
            old = request_id(node)
            await node.meta.write(increment("n"), request_id=old, request_hash=HASH)
            await node.meta.write(epoch_after(0))
            await node.meta.write(increment("n"), request_id=request_id(node), request_hash=HASH)
            assert (await node.meta.write(increment("n"), request_id=old, request_hash=HASH)).repeated
            clock.now_ms += 60_001
            await node.meta.write(
                increment("n"), request_id=bytes(node.process.clock.now()) + bytes(8), request_hash=HASH
            )
            await node.meta.reads.caught_up()
            with pytest.raises(OutcomeUnknown):
                await node.meta.write(increment("n"), request_id=old, request_hash=HASH)

    run(scenario)


def test_a_damaged_record_is_data_loss() -> None:
    key = META_GROUP.segment + bytes(20)
    record = bytearray(encode_remembered(key, Remembered(HASH, Timestamp(0, 1, 2), b"reply")))
    assert decode_remembered(key, bytes(record)) == Remembered(HASH, Timestamp(0, 1, 2), b"reply")
    record[20] ^= 1
    with pytest.raises(DataLoss, match="a remembered request"):
        decode_remembered(key, bytes(record))


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 50)), max_size=20),
    st.integers(0, 10),
    st.integers(1, 300),
    st.integers(0, 100),
)
def test_forgetting_leaves_no_more_than_the_bounds_and_goes_from_the_oldest(
    requests: list[tuple[int, int]], requests_max: int, bytes_max: int, remember_ms: int
) -> None:
    oldest = sorted((bytes(Timestamp(0, wall_ms, 0)) + bytes(8), size) for wall_ms, size in requests)
    state = Remembering(Timestamp(0, 100, 0), Timestamp(0, 0, 0), len(oldest), sum(size for _, size in oldest))
    forgotten = to_forget(oldest, state, Memory(remember_ms, requests_max, bytes_max))
    kept = oldest[len(forgotten) :]
    assert forgotten == oldest[: len(forgotten)]
    assert len(kept) <= requests_max
    assert sum(size for _, size in kept) <= bytes_max
    assert all(100 - Timestamp.from_bytes(id_[:12]).wall_ms <= remember_ms for id_, _ in kept)


@pytest.mark.parametrize("bit", [1, 3])
def test_a_record_whose_segment_has_turned_hides_none_behind_it(tmp_path: Path, bit: int) -> None:
    """It stays in its place in the tree. The floor would rise above all that is remembered."""
    ids = [bytes(Timestamp(0, 1_000 + number, 0)) + bytes(8) for number in range(40)]
    engine = open_lmdb(tmp_path / "data")
    with engine.write() as txn:
        for key in [META_GROUP.segment + each for each in ids]:
            txn.put(Space.REQUESTS, key, encode_remembered(key, Remembered(HASH, Timestamp(0, 1_000, 0), b"reply")))
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    with flipped(engine.path / "engine" / "data.mdb", META_GROUP.segment + ids[0], bit):
        for count in (1, 4, 128):
            found = [request_id for request_id, _ in machine.request_table.oldest(bytes(20), count)]
            assert found and set(found) <= set(ids[1:])
            assert found[0] == ids[1]
    engine.close()
