"""A node that is stopped leaves nothing behind that it knows to be committed: its data can be looked at as it lies."""

from __future__ import annotations

from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import GROUP_ID
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.snapshots.marker import applied_key
from cortado.store.node.status import node_status
from support.nodes import NodeDisk, put, run, running_node


def test_what_was_acknowledged_right_before_a_stop_is_applied_by_it() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            for number in range(3):
                await node.meta.write(put(f"k{number}", b"v"), size_bytes=1)
            last = node_status(node).last_index
        with disk.engine.read() as txn:
            assert AppliedState.decode(txn.get(Space.META, applied_key(GROUP_ID)) or b"").index == last

    run(scenario)
