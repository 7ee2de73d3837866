"""Plain calls of one message that are answered together: their order, their bounds, their request ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from cortado.errors import (
    ConditionFailed,
    DataLoss,
    InvalidArgument,
    ResourceExhausted,
)
from cortado.proto.v1 import calls_pb2, kv_pb2
from cortado.store.auth.tokens import header_of
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Version
from cortado.store.replica.write.overlay import OverlayReader
from cortado.store.server import service
from cortado.store.server.calls_service import CallsLimits
from cortado.store.server.kv_service import KeyValueService
from support.nodes import NOW_MS, until
from support.plain_calls import delete, error, etag, existed, get, given, multi_get, put, value, values
from support.run_twins import LIMITS, METHOD, Served, serving, sizes_of_runs


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the runs of puts that are submitted."""
    return sizes_of_runs(monkeypatch)


def damage(served: Served, key: bytes) -> None:
    """Damage the stored pair of that key."""
    with served.node.process.engine.write() as txn:
        page = txn.page(Space.DATA, b"k", b"l", max_items=100)
        damaged = next(each for each in page.keys if key in each)
        txn.put(Space.DATA, damaged, b"Pdamaged" + bytes(8))


# --- order -----------------------------------------------------------------------------------------------------


def test_puts_of_a_message_are_one_run_and_each_has_a_timestamp_of_its_own(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        replies = await served.call([put(number, b"%d" % (number % 7)) for number in range(1, 30)])
        assert sizes == [29]
        times = [etag(replies[number]) for number in range(1, 30)]
        assert times == [replace(times[0], logical=times[0].logical + place) for place in range(29)]
        found = await served.call([get(100 + key, b"%d" % key) for key in range(7)])
        newest = [kv_pb2.KvGetResponse.FromString(found[100 + key].reply).pair.etag for key in range(7)]
        assert newest == [str(max(ts for number, ts in enumerate(times, 1) if number % 7 == key)) for key in range(7)]

    serving(scenario)


def test_a_run_ends_before_any_other_write_of_the_message(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        conditional = kv_pb2.KvPutRequest.FromString(put(3).request)
        conditional.condition.absent = True
        there = calls_pb2.Call(id=3, method=METHOD + "Put", request=conditional.SerializeToString())
        request = kv_pb2.KvDeleteRequest(namespace="n", key=b"k").SerializeToString()
        delete = calls_pb2.Call(id=6, method=METHOD + "Delete", request=request)
        calls = [put(1), put(2), there, put(4), put(5), delete, put(7, b"other"), put(8, b"other")]
        replies = await served.call(calls)
        assert isinstance(error(replies[3]), ConditionFailed), "the puts before it are evaluated before it"
        assert kv_pb2.KvDeleteResponse.FromString(replies[6].reply).existed
        assert sizes == [2, 2, 2]
        found = await served.call([get(9), get(10, b"other")])
        assert (value(found[9]), value(found[10])) == (None, b"v")

    serving(scenario)


def test_deletes_of_a_message_are_one_run_and_the_second_of_a_key_finds_nothing(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1, b"a"), put(2, b"b")])
        replies = await served.call([delete(11, b"a"), delete(12, b"none"), delete(13, b"b"), delete(14, b"a")])
        assert [existed(replies[number]) for number in (11, 12, 13, 14)] == [True, False, True, False]
        assert sizes == [2, 4]
        again = await served.call([delete(21, b"a"), delete(22, b"b")])
        assert not existed(again[21]) and not existed(again[22]), "a run that changes nothing is remembered, too"
        assert (await served.call([given(delete(11, b"a"), id=31)]))[31].reply == replies[11].reply

    serving(scenario)


def test_puts_and_deletes_happen_in_the_order_of_their_message(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        calls = [put(1), put(2, b"l"), delete(3), delete(4, b"l"), put(5), put(6, b"other"), get(7)]
        replies = await served.call(calls)
        assert existed(replies[3]) and existed(replies[4])
        assert etag(replies[1]) < etag(replies[2]) < etag(replies[5]) < etag(replies[6])
        found = await served.call([get(8), get(9, b"l")])
        assert (value(found[8]), value(found[9])) == (b"v", None)
        assert sizes == [2, 2, 2]

    serving(scenario)


def test_a_run_has_one_namespace_and_one_credential(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        calls = [put(1), put(2), put(3, namespace="m"), put(4, namespace="m")]
        calls += [given(put(number), authorization=header_of("x")) for number in (5, 6)]
        await served.call(calls)
        assert sizes == [2, 2, 2]

    serving(scenario)


# --- bounds ----------------------------------------------------------------------------------------------------


def test_a_run_has_at_most_256_calls(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(number) for number in range(1, 601)])
        assert sizes == [256, 256, 88]

    serving(scenario)


def test_a_run_is_what_a_batch_may_hold(sizes: list[int]) -> None:
    limits = replace(LIMITS, batch_commands_max=8, batch_bytes_max=20_000, command_bytes_max=20_000)

    async def scenario(served: Served) -> None:
        calls = [put(number) for number in range(1, 21)]
        calls += [put(number, value=bytes(6_000)) for number in range(21, 25)]
        # No run of any: the writes would not fit into a batch.
        calls += [put(25, value=bytes(19_600)), put(26, value=bytes(19_600))]
        replies = await served.call(calls)
        assert all(etag(replies[number]) for number in range(1, 27))
        assert sizes == [8, 8, 6, 2]
        assert max(map(len, served.entries)) < 22_000

    serving(scenario, limits=limits)


def test_a_run_takes_as_many_places_as_it_has_calls_and_refused_each_call_is_refused(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        served.send([put(number) for number in range(1, 7)])
        await until(lambda: served.node.process.writes.use().count == 6, "six places are taken")
        assert served.service.use() == (1, 6)
        refused = await served.call([put(number) for number in range(11, 16)])
        assert {type(error(reply)) for reply in refused.values()} == {ResourceExhausted}
        assert served.node.process.writes.use().count == 6
        served.disk.release()
        assert len(await served.receive(6)) == 6
        assert (served.node.process.writes.use().count, served.node.process.writes.use().bytes) == (0, 0)
        assert etag((await served.call([put(11), put(12)]))[11]), "what was refused has not happened, nor is it known"

    serving(scenario, limits=replace(LIMITS, writes_max=10))


def test_no_run_is_larger_than_what_a_gate_lets_in(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        replies = await served.call([put(number) for number in range(1, 10)])
        assert sizes == [4, 4]
        assert len([reply for reply in replies.values() if not reply.status]) == 4
        found = await served.call([get(number) for number in range(11, 20)])
        assert [value(found[number]) for number in range(11, 20)] == [b"v"] * 9

    serving(scenario, limits=replace(LIMITS, writes_max=4, reads_max=4))


def test_a_stream_is_full_of_calls_whatever_runs_they_are_in() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        served.send([put(number) for number in range(1, 9)])
        replies = await served.receive(3)
        assert {number: type(error(reply)) for number, reply in replies.items()} == dict.fromkeys(
            (6, 7, 8), ResourceExhausted
        )
        served.disk.release()
        assert sorted(await served.receive(5)) == [1, 2, 3, 4, 5]

    serving(scenario, calls_limits=CallsLimits(calls_max=5))


def test_what_is_refused_by_itself_goes_by_itself(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        calls = [put(1), put(2, key=b"k" * 490), put(3), put(4, value=bytes((1 << 20) + 1)), put(5, key=b""), put(6)]
        calls += [given(put(7), method=METHOD + "Nothing"), given(put(8), request=b"\xff"), put(9, request_id=b"short")]
        replies = await served.call([*calls, put(10), put(11)])
        assert {number for number, reply in replies.items() if not reply.status} == {1, 3, 6, 10, 11}
        assert sizes == [2], "only two plain ones follow one another"

    serving(scenario)


def test_values_that_are_too_much_for_one_look_are_all_answered() -> None:
    async def scenario(served: Served) -> None:
        size = 200 << 10
        await served.call([put(number, b"%d" % number, bytes([number]) * size) for number in range(1, 21)])
        found = await served.call([get(100 + number, b"%d" % number) for number in range(1, 21)])
        assert [value(found[100 + number]) for number in range(1, 21)] == [bytes([n]) * size for n in range(1, 21)]
        assert served.requests.method(METHOD + "Get").ok == 20
        assert served.node.process.reads.use().count == 0

    serving(scenario)


def test_a_damaged_value_is_one_calls_alone() -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(number, b"%d" % number) for number in range(1, 6)])
        await served.applied()
        damage(served, b"3")
        found = await served.call([get(100 + number, b"%d" % number) for number in range(1, 6)])
        assert isinstance(error(found[103]), DataLoss)
        assert [value(found[100 + number]) for number in (1, 2, 4, 5)] == [b"v"] * 4

    serving(scenario)


def test_a_damaged_value_is_that_of_those_alone_who_ask_for_it() -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(number, b"%d" % number) for number in range(1, 6)])
        await served.applied()
        damage(served, b"3")
        asked = [multi_get(100 + number, b"%d" % number, b"1", b"none") for number in range(1, 6)]
        found = await served.call(asked)
        assert isinstance(error(found[103]), DataLoss)
        assert [values(found[100 + number]) for number in (1, 2, 4, 5)] == [[b"v", b"v", None]] * 4
        assert served.requests.method(METHOD + "MultiGet").codes == {"DATA_LOSS": 1}

    serving(scenario)


@patch.object(service, "SLICE_MS_MAX", 60_000.0)  # A reply that may stop early is not cut by a slow machine.
def test_a_reply_ends_early_where_that_of_a_call_by_itself_does() -> None:
    async def scenario(served: Served) -> None:
        size = 400 << 10
        await served.call([put(number, b"%d" % number, bytes(size)) for number in range(1, 5)])
        keys = [b"%d" % number for number in range(1, 5)]
        # The run's piece of a mebibyte ends with the third value. A reply would be beyond it, and ends before.
        asked = [multi_get(10, *keys[:3], may_stop_early=True)]
        asked += [multi_get(number, *keys, may_stop_early=True) for number in (11, 12)]
        asked += [multi_get(number, *keys) for number in (13, 14)]
        # Two values are read before the piece of a mebibyte ends, and the second of these ends it.
        asked += [multi_get(15, b"1", b"2", may_stop_early=True), multi_get(16, b"3", may_stop_early=True)]
        found = await served.call(asked)
        assert [len(values(found[number])) for number in range(10, 17)] == [2, 2, 2, 4, 4, 2, 1]

    serving(scenario)


def test_large_pairs_of_a_run_are_answered_as_there_is_room_for_their_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    others = 0

    async def counted(self: KeyValueService, request: kv_pb2.KvGetRequest, _get: Any = KeyValueService.get) -> Any:
        begun.append(others)
        return await _get(self, request)

    monkeypatch.setattr(KeyValueService, "get", counted)

    async def scenario(served: Served) -> None:
        nonlocal others
        await served.call([put(1, b"k", bytes(1_000_000))])
        begun.clear()
        asked = asyncio.ensure_future(served.call([get(number) for number in range(11, 61)]))
        while not asked.done():
            others += 1
            await asyncio.sleep(0)
        found = await asked
        assert {len(value(reply) or b"") for reply in found.values()} == {1_000_000}
        assert len(begun) > 40, "a run reads a mebibyte; the others go the general way"
        assert len(set(begun)) == len(begun), "other work of the loop goes on between any two of them"

    serving(scenario, calls_limits=CallsLimits(slice_ms=0))


def test_a_run_looks_up_as_many_keys_as_one_piece_may(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    get_many = OverlayReader.get_many

    def counted(self: OverlayReader, keys: Sequence[LogicalKey], **options: Any) -> list[Version | None]:
        counts.append(len(keys))
        return get_many(self, keys, **options)

    monkeypatch.setattr(OverlayReader, "get_many", counted)

    async def scenario(served: Served) -> None:
        await served.call([put(1, b"a"), put(2, b"b")])
        keys = [b"a", b"b", *(b"%d" % number for number in range(14))]
        found = await served.call([multi_get(number, *keys) for number in range(11, 111)])
        assert [values(found[number]) for number in range(11, 111)] == [[b"v", b"v", *[None] * 14]] * 100
        assert counts == [64 * 16, 36 * 16]
        counts.clear()
        await served.call([multi_get(number, *keys, b"c") for number in (121, 122)])
        assert counts == [], "more keys than these are read beside the loop, in the applied state"

    serving(scenario)


def test_a_delete_that_meets_damage_is_refused_alone(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(number, b"%d" % number) for number in range(1, 6)])
        await served.applied()
        damage(served, b"3")
        replies = await served.call([delete(10 + number, b"%d" % number) for number in range(1, 6)])
        assert sizes == [5, 5]
        assert isinstance(error(replies[13]), DataLoss)
        assert all(existed(replies[10 + number]) for number in (1, 2, 4, 5))
        assert served.requests.method(METHOD + "Delete").codes == {"DATA_LOSS": 1}

    serving(scenario)


def test_where_a_millisecond_has_too_few_timestamps_left_a_run_is_of_the_next() -> None:
    async def scenario(served: Served) -> None:
        served.node.process.clock.observe_log(Timestamp(0, NOW_MS, LOGICAL_MAX - 2))
        replies = await served.call([put(number) for number in range(1, 5)])
        assert [etag(replies[number]) for number in range(1, 5)] == [
            Timestamp(0, NOW_MS + 1, place) for place in range(4)
        ]

    serving(scenario)


# --- request ids -----------------------------------------------------------------------------------------------


def test_a_retry_waits_for_its_place_of_the_run() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        served.send([put(number) for number in range(1, 6)])
        await until(lambda: served.node.process.writes.use().count == 5, "the run is in line")
        served.send([given(put(number), id=100 + number) for number in (2, 4)])
        await until(lambda: served.service.use() == (1, 7), "the retries wait")
        assert served.node.process.writes.use().count == 5
        served.disk.release()
        replies = await served.receive(7)
        for number in (2, 4):
            assert replies[100 + number].reply == replies[number].reply
        await served.applied()
        assert served.node.meta.applied.requests == 5
        assert not served.node.meta.driver.pipeline.requests

    serving(scenario)


def test_what_was_asked_before_leaves_the_run(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        first = await served.call([put(1, value=b"1"), put(2, value=b"2")])
        await served.applied()
        again = [put(11), put(12), given(put(1, value=b"1"), id=13), put(14), put(15)]
        replies = await served.call([*again, given(put(2, value=b"other"), id=16)])
        assert sizes == [2, 2, 2]
        assert replies[13].reply == first[1].reply
        assert isinstance(error(replies[16]), InvalidArgument)
        assert value((await served.call([get(20)]))[20]) == b"v"

    serving(scenario)


def test_a_run_ends_before_a_second_put_of_a_request(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        replies = await served.call([put(1), put(2), given(put(1), id=3), put(4)])
        assert sizes == [2]
        assert replies[3].reply == replies[1].reply
        assert len({etag(reply) for reply in replies.values()}) == 3

    serving(scenario)
