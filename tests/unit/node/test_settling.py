"""Settling: an id with an unknown outcome has happened, or is used up; no caller is told so too early."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import ConditionFailed, TransactionAborted
from cortado.store.host.host import Host
from cortado.store.mvcc.evaluation import Evaluation
from support.nodes import NodeDisk, increment, read, run, running_node, until

HASH = b"h" * 16


def request_id(node: Host) -> bytes:
    return bytes(node.meta.read_ts()) + bytes(8)


def test_a_write_under_way_is_waited_for() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            id_ = request_id(node)
            disk.hold()
            first = asyncio.ensure_future(node.meta.write(increment("n"), request_id=id_, request_hash=HASH))
            await until(lambda: disk.held == 1, "the write is being stored")
            settled = asyncio.ensure_future(node.meta.settle(id_))
            await asyncio.sleep(0)
            assert not settled.done()
            disk.release()
            found = await settled
            assert found is not None
            assert found.ts == (await first).ts

    run(scenario)


def test_a_late_attempt_is_refused_once_the_record_of_that_is_stored_and_not_before() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            id_ = request_id(node)
            disk.hold()
            settled = asyncio.ensure_future(node.meta.settle(id_))
            await until(lambda: disk.held == 1, "the record is being stored")
            again = asyncio.ensure_future(node.meta.settle(id_))
            late = asyncio.ensure_future(node.meta.write(increment("n"), request_id=id_, request_hash=HASH))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not late.done(), "another leader may not know of a record that is not committed"
            assert not again.done()
            disk.release()
            assert await settled is await again is None
            with pytest.raises(TransactionAborted, match="settled"):
                await late
            with pytest.raises(TransactionAborted, match="settled"):
                await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)
            assert read(node, "n") is None

    run(scenario)


def test_a_write_that_is_refused_while_it_is_settled_never_happens_later() -> None:
    def refuse(_reader: object, _commit_ts: object) -> Evaluation:
        raise ConditionFailed("k", "absent", "present")

    async def scenario() -> None:
        async with running_node() as node:
            id_ = request_id(node)
            first = asyncio.ensure_future(node.meta.write(refuse, request_id=id_, request_hash=HASH))
            await asyncio.sleep(0)
            assert await node.meta.settle(id_) is None
            with pytest.raises(ConditionFailed):
                await first
            with pytest.raises(TransactionAborted):
                await node.meta.write(increment("n"), request_id=id_, request_hash=HASH)

    run(scenario)
