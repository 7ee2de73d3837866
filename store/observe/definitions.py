"""Every metric there is: name, kind, labels and meaning. The endpoint, ``Statistics`` and docs/metrics.md follow it.

Names begin with ``cortado_`` and end with their base unit (seconds, bytes); what only grows ends with ``_total``, and
is counted from the start of the process. A label's values come from a set that Cortado bounds: methods, codes, queues,
members; never a key, a table or a caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PREFIX: Final = "cortado_"


class Kind(StrEnum):
    """As Prometheus has them."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Definition:
    """``name`` has no prefix. ``when`` says on which nodes it is there; empty: on all."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    when: str = ""

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


@dataclass(frozen=True, slots=True)
class Part:
    """Definitions that belong together, under a title."""

    title: str
    about: str
    definitions: tuple[Definition, ...]


def _gauge(name: str, meaning: str, *labels: str, when: str = "") -> Definition:
    return Definition(name, Kind.GAUGE, meaning, labels, when)


def _counter(name: str, meaning: str, *labels: str, when: str = "") -> Definition:
    return Definition(name, Kind.COUNTER, meaning, labels, when)


def _histogram(name: str, meaning: str, *labels: str, when: str = "") -> Definition:
    return Definition(name, Kind.HISTOGRAM, meaning, labels, when)


_AT_LEADER: Final = "at the leader, of several members"
_AMONG_SEVERAL: Final = "where there are other members"
_WITH_TLS: Final = "with certificates"

PARTS: Final = (
    Part(
        "The node",
        "Who it is, and whether it can serve: what `/readyz` says, and why.",
        (
            _gauge("build_info", "Always 1; the labels say what runs.", "version", "python", "cluster_id", "node_id"),
            _gauge("ready", "1 where the node can serve, as `/readyz` and the gRPC health service say, else 0."),
            _gauge("not_ready", "1 for each reason for which it cannot serve, 0 for the others.", "reason"),
            _gauge("uptime_seconds", "Since the node started."),
        ),
    ),
    Part(
        "Requests",
        "Unary calls, each by itself or on the coalescing stream of the Python client, count alike. What a method has "
        "never been asked is not shown. Refusals for want of a resource are counted by what there was too little of.",
        (
            _counter("requests_total", "Unary calls that ended, by their gRPC code.", "method", "code"),
            _histogram(
                "request_duration_seconds",
                "From the request's bytes to the reply's: waiting in the node included, the network not.",
                "method",
            ),
            _counter("request_received_bytes_total", "Serialized requests.", "method"),
            _counter("request_sent_bytes_total", "Serialized replies, of streams too.", "method"),
            _counter("streams_total", "Streams that ended, by their gRPC code.", "method", "code"),
            _gauge("streams_open", "Streams that are open.", "method"),
            _counter("stream_replies_total", "Messages sent on streams.", "method"),
            _counter("slow_requests_total", "Unary calls that took longer than `slow-request-ms`."),
            _counter("refusals_total", "Calls that ended with `RESOURCE_EXHAUSTED`, by the resource.", "resource"),
        ),
    ),
    Part(
        "Queues",
        "Everything that queues is bounded; beyond it callers are refused at once. A bound of 0 bytes means that only "
        "the count is bounded.",
        (
            _gauge("queue_entries", "What is in the queue.", "queue"),
            _gauge("queue_entries_limit", "The bound on that.", "queue"),
            _gauge("queue_bytes", "The bytes of it.", "queue"),
            _gauge("queue_bytes_limit", "The bound on that; 0 for none.", "queue"),
            _counter("queue_refused_total", "Callers that found no room.", "queue"),
        ),
    ),
    Part(
        "Writes",
        "At the leader: a write waits in line, is evaluated into a turn, the turn becomes an entry of the log, that is "
        "decided when a majority has it on disk (the caller is answered), and is applied a little later.",
        (
            _gauge("writes_in_line", "Writes that were not evaluated yet."),
            _histogram("write_wait_seconds", "From the call to its evaluation, for each write."),
            _counter("turns_total", "Turns of the node's loop: something arrived, was stored, or was due."),
            _histogram("entry_commands", "Writes that share an entry."),
            _histogram("entry_bytes", "About what an entry holds."),
            _histogram("entry_evaluate_seconds", "Evaluating all writes of an entry."),
            _histogram("entry_decide_seconds", "From appending an entry to its decision: what replication costs."),
            _histogram("entry_apply_seconds", "From an entry's decision until it is applied and durable here."),
            _gauge("entries_in_flight", "Entries that are appended here and not applied."),
            _gauge("entries_in_flight_limit", "The bound on that; beyond it writes wait in line."),
            _gauge("entries_in_flight_bytes", "Bytes that those entries write."),
            _gauge("entries_in_flight_bytes_limit", "The bound on that; beyond it writes wait in line."),
            _gauge("writes_slowed", "1 while appending is slowed, so that a member can catch up."),
            _counter("writes_slowed_seconds_total", "How long entries waited for that."),
        ),
    ),
    Part(
        "Reads",
        "A linearizable read at the leader of several voters waits for a round of heartbeats, which all that wait "
        "share.",
        (
            _counter("read_rounds_total", "Rounds of heartbeats for reads, and for refusals of writes."),
            _histogram("read_wait_seconds", "What a linearizable read waited for its round, where it had to."),
            _counter("read_waits_failed_total", "Linearizable reads that waited, and lost their leader meanwhile."),
            _counter("stale_reads_refused_total", "Stale reads for which this replica was too far behind."),
        ),
    ),
    Part(
        "Watches",
        "Changes of key ranges that callers follow.",
        (
            _gauge("watches_open", "Watches that are open."),
            _gauge("watch_ranges", "Different ranges that they watch."),
            _gauge("watches_catching_up", "Those that read history from the engine, or wait to."),
            _gauge("watch_queued_events", "Changes that wait to be sent."),
            _gauge("watch_queued_bytes", "Their bytes."),
            _gauge("watch_recent_bytes", "Changes that are kept in memory for who comes back."),
            _counter("watch_events_total", "Changes that were handed over."),
            _counter("watch_overflows_total", "Times that a watch was too slow for its queue, and caught up instead."),
            _counter("watch_passes_total", "Times that the versions of a range were searched."),
            _gauge("watch_lag_seconds", "How far the slowest watch is behind what is applied."),
        ),
    ),
    Part(
        "Replication",
        "What the node knows of its group. Each member says what it sees itself; lags are known to the leader.",
        (
            _gauge("role", "1 for the node's role (leader, follower, candidate, learner), 0 for the others.", "role"),
            _gauge("has_leader", "1 where the node knows a leader, or is it."),
            _gauge("may_lead", "0 where something forbids the node to lead: its clock, a snapshot, a stop."),
            _gauge("term", "The Raft term."),
            _gauge("log_last_index", "The last entry of the log, decided or not."),
            _gauge("log_decided_index", "The last entry that is decided, as far as the node knows."),
            _gauge("log_applied_index", "The last entry that is applied here."),
            _gauge("log_entries", "Entries that the log holds in memory."),
            _gauge("log_bytes", "Bytes of the log's entries that are stored."),
            _gauge("staleness_seconds", "All that was decided so long ago is known to be applied here."),
            _counter("leader_changes_total", "Times that the node saw another leader than before, the first included."),
            _counter("terms_led_total", "Terms that the node itself has led."),
            _counter("pre_votes_total", "Rounds of pre-votes that it asked for: it missed a leader."),
            _counter("campaigns_total", "Elections that it began."),
            _counter("votes_given_total", "Votes that it gave to others."),
            _gauge("members", "Members of the group, by kind (voter, learner).", "kind"),
            _gauge("member_lag_entries", "Entries that the member is not known to have.", "member", when=_AT_LEADER),
            _gauge(
                "member_lag_seconds",
                "How long the leader has had an entry that the member is not known to have; to a quarter of a second, "
                "ten minutes at most.",
                "member",
                when=_AT_LEADER,
            ),
            _gauge("member_silence_seconds", "Since the member last answered.", "member", when=_AT_LEADER),
            _gauge("member_needs_snapshot", "1 where its next entry is gone from the log.", "member", when=_AT_LEADER),
            _counter("snapshots_made_total", "Snapshots that were made here for other members."),
            _counter("snapshot_sent_bytes_total", "Bytes of snapshots that other members fetched here."),
            _counter("snapshots_installed_total", "Snapshots that were installed here."),
            _gauge("damaged_items", "Stored items that are known to be damaged here, and are not repaired yet."),
            _counter("repairs_total", "Damaged ranges that were made whole from another member's copy."),
            _counter("repaired_items_total", "Items that were put or deleted by repairs, and by comparing everything."),
            _gauge("snapshot_installing", "1 while a snapshot takes the place of this replica's data."),
        ),
    ),
    Part(
        "Peers",
        "The one stream between this node and each other member.",
        (
            _gauge("peer_connected", "1 where the stream stands.", "peer", when=_AMONG_SEVERAL),
            _counter(
                "peer_connections_total", "Streams that were accepted by both sides.", "peer", when=_AMONG_SEVERAL
            ),
            _counter("peer_sent_bytes_total", "Bytes sent.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_received_bytes_total", "Bytes received.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_sent_batches_total", "Messages of the stream that were sent.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_received_batches_total", "The same, received.", "peer", when=_AMONG_SEVERAL),
            _counter(
                "peer_dropped_total",
                "Messages without a stream or room; Raft sends again.",
                "peer",
                when=_AMONG_SEVERAL,
            ),
            _gauge("peer_queue_messages", "Messages that wait to be sent.", "peer", when=_AMONG_SEVERAL),
            _gauge("peer_queue_bytes", "Their bytes.", "peer", when=_AMONG_SEVERAL),
        ),
    ),
    Part(
        "Clock",
        "A peer's physical clock minus this node's lies between the two bounds.",
        (
            _gauge("clock_offset_low_seconds", "The lower bound.", "peer", when=_AMONG_SEVERAL),
            _gauge("clock_offset_high_seconds", "The upper bound.", "peer", when=_AMONG_SEVERAL),
            _gauge(
                "clock_offset_limit_seconds", "How far apart clocks may be before one that is off gives up leading."
            ),
            _gauge("clock_ahead_seconds", "How far the node's timestamps are ahead of its physical clock."),
            _gauge("clock_jump_seconds", "How far the wall clock has jumped from the time that is kept instead of it."),
            _gauge("clock_epoch", "The epoch of timestamps; a person begins a new one."),
            _gauge("clock_ceiling_timestamp_seconds", "The wall time below which reads ahead of the log are kept."),
            _gauge("clock_last_timestamp_seconds", "The wall time of the last write that is applied here."),
        ),
    ),
    Part(
        "Storage",
        "The data directory: one LMDB file, which never shrinks; pages that are freed are used again.",
        (
            _gauge("storage_writable", "0 where there is no room for writes: reads go on."),
            _histogram("storage_transaction_seconds", "From handing work to the storage thread until it is durable."),
            _histogram("storage_fill_seconds", "Putting a transaction's items into LMDB."),
            _histogram("storage_sync_seconds", "Committing a transaction: two flushes to the disk."),
            _counter("storage_refused_total", "Transactions that found no room."),
            _gauge("map_used_bytes", "Pages in use."),
            _gauge("map_limit_bytes", "The bound on the data: setting `map-size`."),
            _gauge("data_file_bytes", "The data file; what it has more than pages in use is free to be used again."),
            _gauge("disk_free_bytes", "What the disk under the directory still takes."),
            _gauge("reserve_bytes", "What of map and disk is kept free of admitted writes."),
            _gauge("page_bytes", "The size of LMDB's pages."),
            _gauge("space_entries", "Items in each of the engine's spaces.", "space"),
            _gauge("engine_readers", "Places for readers in LMDB that were ever taken."),
            _gauge("engine_readers_limit", "How many of them there are."),
            _counter("engine_transactions_total", "Write transactions since the directory was made."),
            _gauge("patrol_read_bytes", "What the pass over all that is stored has verified; it begins again at 0."),
            _gauge("patrol_expected_bytes", "About how much that will be."),
            _counter("patrol_passes_total", "Passes that are over."),
            _gauge("patrol_pass_seconds", "How long the last one took.", when="once one is over"),
            _counter("patrol_damaged_total", "Damaged places that passes met."),
            _counter("entries_examined_total", "Entries whose reads were compared with what is stored here."),
            _counter("entries_doubted_total", "Those of them that were not kept at once, since somebody is damaged."),
            _counter("entries_disowned_total", "This leader's entries that it gave up, having lost something."),
            _gauge("remembered_requests", "Results of requests that are kept for repetitions."),
            _gauge("remembered_request_bytes", "Their bytes."),
        ),
    ),
    Part(
        "The process",
        "Read from the operating system, where it tells.",
        (
            _gauge("process_resident_memory_bytes", "Memory that is not swapped out."),
            _counter("process_cpu_seconds_total", "CPU time, of user and system."),
            _gauge("process_open_fds", "Open files and connections."),
            _gauge("process_max_fds", "The bound on them."),
            _gauge("process_threads", "Threads of the interpreter."),
            _gauge("process_start_time_seconds", "When the process started, since 1970."),
            _histogram("loop_lag_seconds", "How late the event loop was, looked at ten times a second."),
            _gauge("loop_lag_max_seconds", "The longest of the last minute."),
            _gauge(
                "certificate_not_after_timestamp_seconds",
                "When a certificate expires, since 1970: this node's, and the authority's that lasts longest.",
                "certificate",
                when=_WITH_TLS,
            ),
        ),
    ),
)

DEFINITIONS: Final = {each.name: each for part in PARTS for each in part.definitions}
