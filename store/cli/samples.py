"""A node's figures in ``cortado top``: rates and latencies of the time between two readings of its statistics.

Counters only grow while a process lives, so a rate is a difference by the node's own clock; a process that was started
between the two has no rates yet. Latencies are quantiles of the increments of a histogram's buckets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cortado.store.client.statistics import Since, Statistics

_DATA: Final = ("cortado.v1.KeyValue/", "cortado.v1.Documents/")
_WRITES: Final = frozenset({"Put", "Update", "Delete", "DeleteRange", "Batch"})


@dataclass(frozen=True, slots=True)
class NodeSample:
    """A node at one moment. None if it is not known: the node did not answer, or nothing happened to measure.

    Rates are per second, latencies and lags in seconds. ``queue_use`` is the fullest queue's part of its bound, and
    ``queue`` its name. ``lag_entries`` and ``lag_s`` are the leader's figures. ``clock_offset_s`` is the least offset
    from the node's clock of the clock that differs most.
    """

    node_id: str
    address: str
    voter: bool
    reached: bool
    problem: str | None = None
    ready: bool | None = None
    reasons: tuple[str, ...] = ()
    role: str | None = None
    term: int | None = None
    applied_index: int | None = None
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    stream_bytes_per_s: float | None = None
    refused_per_s: float | None = None
    slow_per_s: float | None = None
    read_p50_s: float | None = None
    read_p99_s: float | None = None
    write_p50_s: float | None = None
    write_p99_s: float | None = None
    sync_p99_s: float | None = None
    decide_p99_s: float | None = None
    lag_entries: int | None = None
    lag_s: float | None = None
    queue: str | None = None
    queue_use: float | None = None
    watches: int | None = None
    disk_free_bytes: int | None = None
    map_used_bytes: int | None = None
    memory_bytes: int | None = None
    cpu_percent: float | None = None
    loop_lag_max_s: float | None = None
    clock_offset_s: float | None = None
    uptime_s: float | None = None


def not_reached(node_id: str, address: str, voter: bool, problem: str) -> NodeSample:
    """Return a node that does not answer."""
    return NodeSample(node_id, address, voter, reached=False, problem=problem)


def sample(
    address: str, voter: bool, now: Statistics, before: Statistics | None, leader: Statistics | None
) -> NodeSample:
    """Return a node as it is ``now``, with rates since ``before``; ``leader`` tells of its lag."""
    since = Since(now, before)
    queue, queue_use = _fullest(now)
    roles = [role for (role,), is_it in now.by_label("cortado_role").items() if is_it]
    lag_entries = _of_member(leader, now, "cortado_member_lag_entries")
    reads, writes = _reads(now), _writes(now)
    return NodeSample(
        now.node_id,
        address,
        voter,
        reached=True,
        ready=not now.problems,
        reasons=tuple(reason for reason, _ in now.problems),
        role=roles[0] if roles else None,
        term=int(now.value("cortado_term")),
        applied_index=int(now.value("cortado_log_applied_index")),
        reads_per_s=since.calls_per_s(reads),
        writes_per_s=since.calls_per_s(writes),
        stream_bytes_per_s=since.rate("cortado_request_sent_bytes_total", _streams(now)),
        refused_per_s=since.rate("cortado_refusals_total"),
        slow_per_s=since.rate("cortado_slow_requests_total"),
        read_p50_s=since.latency(0.5, reads),
        read_p99_s=since.latency(0.99, reads),
        write_p50_s=since.latency(0.5, writes),
        write_p99_s=since.latency(0.99, writes),
        sync_p99_s=since.quantile("cortado_storage_sync_seconds", 0.99),
        decide_p99_s=since.quantile("cortado_entry_decide_seconds", 0.99),
        lag_entries=None if lag_entries is None else int(lag_entries),
        lag_s=_of_member(leader, now, "cortado_member_lag_seconds"),
        queue=queue,
        queue_use=queue_use,
        watches=int(now.value("cortado_watches_open")),
        disk_free_bytes=int(now.value("cortado_disk_free_bytes")),
        map_used_bytes=int(now.value("cortado_map_used_bytes")),
        memory_bytes=int(now.value("cortado_process_resident_memory_bytes")),
        cpu_percent=since.percent("cortado_process_cpu_seconds_total"),
        loop_lag_max_s=now.value("cortado_loop_lag_max_seconds"),
        clock_offset_s=_clock_offset(now),
        uptime_s=now.value("cortado_uptime_seconds"),
    )


def _methods(now: Statistics) -> Iterable[str]:
    seen = {labels[0] for labels in now.by_label("cortado_requests_total")}
    return sorted(method for method in seen if method.startswith(_DATA))


def _writes(now: Statistics) -> list[str]:
    return [method for method in _methods(now) if method.rpartition("/")[2] in _WRITES]


def _reads(now: Statistics) -> list[str]:
    return [method for method in _methods(now) if method.rpartition("/")[2] not in _WRITES]


def _streams(now: Statistics) -> list[tuple[str, ...]]:
    """Methods that stream, but the one that carries unary calls."""
    return [labels for labels in now.by_label("cortado_streams_open") if not labels[0].endswith("Calls/Exchange")]


def _fullest(now: Statistics) -> tuple[str | None, float | None]:
    """Return the queue that is nearest to a bound of its own, and how near."""
    uses: dict[str, float] = {}
    for what in ("entries", "bytes"):
        limits = now.by_label(f"cortado_queue_{what}_limit")
        for labels, limit in limits.items():
            if limit:
                use = now.value(f"cortado_queue_{what}", *labels) / limit
                uses[labels[0]] = max(uses.get(labels[0], 0.0), use)
    if not uses:
        return None, None
    queue = max(uses, key=lambda name: uses[name])
    return queue, uses[queue]


def _of_member(leader: Statistics | None, member: Statistics, name: str) -> float | None:
    """Return the leader's figure for another member."""
    return None if leader is None else leader.by_label(name).get((member.node_id,))


def _clock_offset(now: Statistics) -> float | None:
    """Return the offset that is furthest from none, each as near to none as its interval allows."""
    offsets = []
    for labels, low in now.by_label("cortado_clock_offset_low_seconds").items():
        high = now.value("cortado_clock_offset_high_seconds", *labels)
        offsets.append(max(low, 0.0) + min(high, 0.0))
    return max(offsets, key=abs, default=None)
