"""Reads that take long have a hold: the versions that they need are kept until they end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from cortado.errors import ResourceExhausted, SnapshotTooOld
from cortado.store.client import Client
from cortado.store.client.values import At


@contextmanager
def kept(client: Client, at: At, label: str) -> Iterator[At]:
    """Keep history from ``at`` on (None: from the newest) for the block; gives the time to read at.

    If no hold can be had, go on without one: a table may keep its old versions for longer than a hold reaches back.
    And a cluster with full disks, which takes no writes, must be exported all the same. Then reads that need collected
    versions raise SnapshotTooOld.
    """
    with ExitStack() as stack:
        with suppress(SnapshotTooOld, ResourceExhausted):
            at = stack.enter_context(client.hold(at, label=label)).timestamp
        yield at
