"""Reads that take long hold a lease: what they need stays until they end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from cortado.errors import ResourceExhausted, SnapshotTooOld
from cortado.store.client import Client
from cortado.store.client.values import At


@contextmanager
def leased(client: Client, at: At, label: str) -> Iterator[At]:
    """Hold a lease at ``at`` (None: at the newest) for the block; gives the time to read at.

    Without one it goes on where none is to be had: a table may keep its old versions for longer than a lease reaches
    back, and a cluster whose disks are full, which takes no writes, must be exported all the same. Reads that need what
    was collected raise SnapshotTooOld then.
    """
    with ExitStack() as stack:
        with suppress(SnapshotTooOld, ResourceExhausted):
            at = stack.enter_context(client.lease(at, label=label)).timestamp
        yield at
