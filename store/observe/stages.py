"""The stages of a call's time in the node, for the log of slow calls and for traces: both use the same words.

::

    queued                until the write was evaluated
    batching              until its batch's entry was appended to the log
    commit                until a majority had the entry on disk
      └─ fsync            until this node had
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cortado.store.observe.call import Call


class Stage(NamedTuple):
    """A part of a call, in monotonic milliseconds of the node, and the stage that it is a part of (empty: the call)."""

    name: str
    began_ms: float
    ended_ms: float
    within: str = ""


def stages_of(call: Call, now_ms: float) -> Iterator[Stage]:
    """Yield the known stages of a write in the node, outer stages before those within them. A stage that has not ended
    lasts until now."""
    write = call.write
    if write is None or not write.proposed_ms:
        return
    yield Stage("queued", write.proposed_ms, write.evaluated_ms or now_ms)
    entry = write.entry
    if entry is None or not write.evaluated_ms:
        return
    yield Stage("batching", write.evaluated_ms, entry.appended_ms or now_ms)
    if not entry.appended_ms:
        return
    yield Stage("commit", entry.appended_ms, entry.committed_ms or now_ms)
    # If the others were a majority without this node's disk, the write did not wait for it.
    if entry.stored_ms or not entry.committed_ms:
        yield Stage("fsync", entry.appended_ms, entry.stored_ms or now_ms, within="commit")
