"""All metrics: name, kind, labels and meaning. The endpoint, ``Statistics`` and docs/metrics.md follow it.

Names begin with ``cortado_`` and end with their base unit (seconds, bytes). A counter ends with ``_total``, and
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


_AT_LEADER: Final = "at a leader with other members"
_LEADING: Final = "at a leader"
_AMONG_SEVERAL: Final = "with other members"
_WITH_TLS: Final = "with certificates"

PARTS: Final = (
    Part(
        "The node",
        "The node's identity, and whether it can serve: the result of `/readyz`, and the reasons.",
        (
            _gauge("build_info", "Always 1; the labels say what runs.", "version", "python", "cluster_id", "node_id"),
            _gauge("ready", "1 if the node can serve, as `/readyz` and the gRPC health service say, else 0."),
            _gauge("not_ready", "1 for each reason why the node cannot serve, 0 for the others.", "reason"),
            _gauge("uptime_seconds", "Time since the node started."),
        ),
    ),
    Part(
        "Requests",
        "A unary call counts alike whether it came by itself or on the coalescing stream of the Python client. A "
        "method is shown after its first call.",
        (
            _counter("requests_total", "Unary calls that ended, by gRPC code.", "method", "code"),
            _histogram(
                "request_duration_seconds",
                "Time from the request's bytes to the reply's, with waits in the node and without the network.",
                "method",
            ),
            _counter("request_received_bytes_total", "Bytes of serialized requests.", "method"),
            _counter("request_sent_bytes_total", "Bytes of serialized replies, including those of streams.", "method"),
            _counter("streams_total", "Streams that ended, by gRPC code.", "method", "code"),
            _gauge("streams_open", "Open streams.", "method"),
            _counter("stream_replies_total", "Messages sent on streams.", "method"),
            _counter("slow_requests_total", "Unary calls that took longer than `slow-request-ms`."),
            _counter(
                "refusals_total", "Calls that ended with `RESOURCE_EXHAUSTED`, by the exhausted resource.", "resource"
            ),
        ),
    ),
    Part(
        "Queues",
        "Every queue is bounded; beyond the bound callers are refused at once. A bound of 0 bytes means that only the "
        "count is bounded.",
        (
            _gauge("queue_entries", "Entries in the queue.", "queue"),
            _gauge("queue_entries_limit", "Maximum number of entries in the queue.", "queue"),
            _gauge("queue_bytes", "Bytes in the queue.", "queue"),
            _gauge("queue_bytes_limit", "Maximum number of bytes in the queue; 0 for no bound.", "queue"),
            _counter("queue_refused_total", "Callers refused because the queue was full.", "queue"),
        ),
    ),
    Part(
        "Quotas",
        "The use of principals, databases and namespaces under their [quotas](quotas.md), as this node counts it. "
        "`cortado quota list` names them.",
        (
            _gauge("quotas", "Quotas, by the kind of their target (principal, database, namespace).", "kind"),
            _counter(
                "quota_refused_total",
                "Calls refused because a quota was used up, by the kind of its target and by its limit "
                "(calls_per_second, bytes_per_second, stored_bytes).",
                "kind",
                "limit",
            ),
            _gauge(
                "quota_stored_fullest_ratio",
                "The largest use of a quota of stored bytes: used bytes divided by the limit; at 1 nothing is added.",
                when="with quotas of stored bytes",
            ),
        ),
    ),
    Part(
        "Sizes",
        "How much tables and databases have stored at this node, measured about four times a minute while something is "
        "written; of more than about a megabyte they are [estimates](data-modelling.md#how-large-tables-are).",
        (
            _gauge("table_rows", "Rows of a table, of the hundred largest.", "table", when="with tables"),
            _gauge(
                "table_bytes",
                "Bytes of a table's keys and values, with indexes and old versions.",
                "table",
                when="with tables",
            ),
            _gauge("database_rows", "Rows of all tables of a database.", "database", when="with tables"),
            _gauge(
                "database_bytes",
                "Bytes of all tables of a database, with indexes and old versions.",
                "database",
                when="with tables",
            ),
        ),
    ),
    Part(
        "Writes",
        "At the leader. A write is queued, then evaluated into a batch; the batch is appended to the log as one entry. "
        "The entry is committed when a majority has it on disk; the caller is answered then. It is applied a little "
        "later.",
        (
            _gauge("writes_in_line", "Queued writes that are not evaluated yet."),
            _histogram("write_wait_seconds", "Time that a write was queued, from the call to its evaluation."),
            _counter(
                "rounds_total", "Iterations of the node's main loop; each handles what arrived, was stored, or was due."
            ),
            _counter(
                "commits_total",
                "Commits of transactions and batches, by outcome: committed; refused; or a conflict with a key that it "
                "wrote, a key that it read, a range that it read, or the meaning of the name of a table or a "
                "namespace.",
                "outcome",
            ),
            _counter(
                "commits_evaluated_again_total",
                "Large commits that were evaluated again, since something that they read changed before their turn.",
            ),
            _histogram("entry_commands", "Writes in one entry."),
            _histogram("entry_bytes", "Approximate size of an entry."),
            _histogram("entry_evaluate_seconds", "Time to evaluate all writes of an entry."),
            _histogram(
                "entry_commit_seconds", "Time from appending an entry until it is committed: the cost of replication."
            ),
            _histogram(
                "entry_apply_seconds", "Time from an entry's commit until it is applied and durable on this node."
            ),
            _gauge("entries_in_flight", "Entries that are appended on this node and not applied yet."),
            _gauge("entries_in_flight_limit", "Maximum number of entries in flight; beyond it writes stay queued."),
            _gauge("entries_in_flight_bytes", "Bytes that the entries in flight write."),
            _gauge(
                "entries_in_flight_bytes_limit", "Maximum bytes of the entries in flight; beyond it writes stay queued."
            ),
            _gauge("writes_slowed", "1 while the leader slows writes down so that a member can catch up."),
            _counter(
                "writes_slowed_seconds_total",
                "Total time for which entries were delayed so that a member could catch up.",
            ),
        ),
    ),
    Part(
        "Reads",
        "With several voters, a linearizable read waits at the leader for a round of heartbeats; all waiting reads "
        "share one round.",
        (
            _counter("read_rounds_total", "Rounds of heartbeats for reads, and for refused writes."),
            _histogram("read_wait_seconds", "Time that a linearizable read waited for its round, if it had to."),
            _counter(
                "read_waits_failed_total",
                "Linearizable reads that failed because leadership was lost while they waited.",
            ),
            _counter("stale_reads_refused_total", "Stale reads refused because this replica was too far behind."),
            _gauge("kept_columns_bytes", "Memory of columns of rows that are kept for later aggregates."),
            _counter(
                "kept_columns_slices_total",
                "Slices of aggregates that may use kept columns, by source: found there, or read from the store.",
                "source",
            ),
        ),
    ),
    Part(
        "Watches",
        "Watches stream the changes of key ranges.",
        (
            _gauge("watches_open", "Open watches."),
            _gauge("watch_ranges", "Distinct key ranges that are watched."),
            _gauge("watches_catching_up", "Watches that read history from the engine, or wait to."),
            _gauge("watch_queued_events", "Changes queued for sending."),
            _gauge("watch_queued_bytes", "Bytes of the changes queued for sending."),
            _gauge("watch_recent_bytes", "Bytes of recent changes kept in memory, for watches that resume."),
            _counter("watch_events_total", "Changes that were delivered to watches."),
            _counter(
                "watch_overflows_total", "Times that a watch overflowed its queue and went back to reading history."
            ),
            _counter("watch_passes_total", "Searches of a range's history."),
            _counter("watch_passes_by_index_total", "Searches that the index of changes answered."),
            _gauge("watch_lag_seconds", "How far the slowest watch is behind the last applied entry."),
        ),
    ),
    Part(
        "Collection",
        "Old versions are removed below the safepoint, which leases hold back; clients call a lease a hold. Only the "
        "leader knows of leases, and of the pieces that it examines.",
        (
            _gauge(
                "safepoint_lag_seconds",
                "How far back the safepoint is, below which reads are refused; 0 while nothing was ever collected.",
            ),
            _counter("collected_items_total", "Stored items that collection removed on this node."),
            _gauge("collection_pieces_pending", "Pieces of the stored keys that are to be examined.", when=_LEADING),
            _gauge("leases", "Leases that there are.", when=_LEADING),
            _gauge(
                "lease_oldest_seconds", "How long ago the oldest leased timestamp is; 0 without leases.", when=_LEADING
            ),
            _counter("leases_expired_total", "Leases that this node ended: silent holders, or a day old."),
        ),
    ),
    Part(
        "Large transactions",
        "Any number of rows that become visible at once. What they have staged is locked until they end, and is put in "
        "its place by the leader.",
        (
            _gauge("large_transactions_open", "Large transactions that take rows."),
            _gauge("large_transactions_unresolved", "Large transactions that have ended and left staged rows."),
            _counter(
                "large_transaction_items_resolved_total",
                "Staged rows and entries that this node, as the leader, has put in their place or taken away.",
            ),
        ),
    ),
    Part(
        "Jobs",
        "Long work of the cluster's own, such as building indexes. The leader does it, step by step.",
        (
            _gauge("jobs_running", "Jobs that run.", when=_LEADING),
            _gauge("job_rows_done", "Rows that the running jobs have done.", when=_LEADING),
            _gauge("job_rows_expected", "Rows that there were about when the running jobs began.", when=_LEADING),
            _counter("job_steps_total", "Steps of jobs that this node has done."),
        ),
    ),
    Part(
        "Replication",
        "The state of the Raft group as this node sees it. Only the leader knows the lags of the members.",
        (
            _gauge("role", "1 for the node's role (leader, follower, candidate, learner), 0 for the others.", "role"),
            _gauge("has_leader", "1 if the node knows a leader, or leads."),
            _gauge("may_lead", "0 while the node must not lead: because of its clock, a snapshot or a stop."),
            _gauge("term", "The Raft term."),
            _gauge("log_last_index", "Index of the last entry of the log, committed or not."),
            _gauge("log_commit_index", "Index of the last entry that the node knows to be committed."),
            _gauge("log_applied_index", "Index of the last entry that is applied on this node."),
            _gauge("log_entries", "Entries of the log in memory."),
            _gauge("log_bytes", "Bytes of the stored entries of the log in memory."),
            _gauge("staleness_seconds", "Age of the newest state that this node can prove to hold completely."),
            _counter("leader_changes_total", "Times that the node saw a new leader, including the first."),
            _counter("terms_led_total", "Terms that this node led."),
            _counter("pre_votes_total", "Rounds of pre-votes that this node began because it missed a leader."),
            _counter("campaigns_total", "Elections that this node began."),
            _counter("votes_given_total", "Votes that this node gave to others."),
            _counter("log_messages_refused_total", "Messages about the log that were refused: see the node's log."),
            _gauge("log_disputes", "Claims of members against this node's log that are not settled."),
            _gauge("members", "Members of the group, by kind (voter, learner).", "kind"),
            _gauge(
                "member_lag_entries",
                "Entries that the leader does not know the member to have.",
                "member",
                when=_AT_LEADER,
            ),
            _gauge(
                "member_lag_seconds",
                "Age of the oldest entry that the leader does not know the member to have; to a quarter of a second, "
                "at most ten minutes.",
                "member",
                when=_AT_LEADER,
            ),
            _gauge("member_silence_seconds", "Time since the member last answered.", "member", when=_AT_LEADER),
            _gauge(
                "member_needs_snapshot",
                "1 if the member's next entry is no longer in the log.",
                "member",
                when=_AT_LEADER,
            ),
            _gauge(
                "member_room_bytes",
                "Space in the map and on the disk that the member has left above its reserve, by its own word.",
                "member",
                when=_AT_LEADER,
            ),
            _counter("snapshots_made_total", "Snapshots that this node made for other members."),
            _counter("snapshot_sent_bytes_total", "Bytes of snapshots that other members fetched from this node."),
            _counter("snapshots_installed_total", "Snapshots that this node installed."),
            _gauge("damaged_items", "Stored items on this node that are known to be damaged and not repaired yet."),
            _counter("repairs_total", "Damaged ranges that were repaired from another member's copy."),
            _counter(
                "repaired_items_total", "Items that repairs and comparisons with another member wrote or deleted."
            ),
            _gauge("snapshot_installing", "1 while a snapshot replaces this replica's data."),
        ),
    ),
    Part(
        "Peers",
        "The one stream between this node and each other member.",
        (
            _gauge("peer_connected", "1 while the stream is connected.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_connections_total", "Streams that both sides accepted.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_sent_bytes_total", "Bytes sent.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_received_bytes_total", "Bytes received.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_sent_batches_total", "Messages sent on the stream.", "peer", when=_AMONG_SEVERAL),
            _counter("peer_received_batches_total", "Messages received on the stream.", "peer", when=_AMONG_SEVERAL),
            _counter(
                "peer_dropped_total",
                "Messages dropped for want of a stream or of room in the queue; Raft sends them again.",
                "peer",
                when=_AMONG_SEVERAL,
            ),
            _gauge("peer_queue_messages", "Messages queued for sending.", "peer", when=_AMONG_SEVERAL),
            _gauge("peer_queue_bytes", "Bytes of the messages queued for sending.", "peer", when=_AMONG_SEVERAL),
        ),
    ),
    Part(
        "Clock",
        "A peer's physical clock minus this node's lies between the two bounds.",
        (
            _gauge("clock_offset_low_seconds", "The lower bound.", "peer", when=_AMONG_SEVERAL),
            _gauge("clock_offset_high_seconds", "The upper bound.", "peer", when=_AMONG_SEVERAL),
            _gauge("clock_offset_limit_seconds", "Maximum offset of a clock; a leader beyond it gives up leadership."),
            _gauge("clock_ahead_seconds", "How far the node's timestamps are ahead of its physical clock."),
            _gauge(
                "clock_jump_seconds",
                "How far the wall clock has jumped away from the time that the node keeps instead.",
            ),
            _gauge("clock_epoch", "The epoch of timestamps; `cortado clock bump-epoch` begins a new one."),
            _gauge(
                "clock_ceiling_timestamp_seconds",
                "Wall time of the replicated ceiling, below which reads ahead of the log stay.",
            ),
            _gauge("clock_last_timestamp_seconds", "Wall time of the last write that is applied on this node."),
        ),
    ),
    Part(
        "Log files",
        "The disk that every write waits for: entries, terms and votes are appended to files and synced, one write "
        "at a time. A file is dropped when nothing in it is needed: all of it is applied durably, and no member that "
        "is a little behind needs it.",
        (
            _histogram(
                "log_write_seconds", "Time from giving a write to the log thread until it is durable: one flush."
            ),
            _counter("log_write_refused_total", "Writes of the log refused for want of room."),
            _gauge("log_segments", "Log files."),
            _gauge("log_disk_bytes", "Size of the log files; each is preallocated."),
            _gauge("log_segment_free_bytes", "Bytes left in the log file that is written."),
            _gauge("log_oldest_segment", "Number of the oldest log file."),
            _gauge("log_newest_segment", "Number of the log file that is written."),
        ),
    ),
    Part(
        "Storage",
        "The applied data: one LMDB file, which never shrinks; freed pages are reused.",
        (
            _gauge("storage_writable", "0 while there is no room for writes; reads continue."),
            _histogram(
                "storage_transaction_seconds",
                "Time from giving a transaction to the storage thread until it is durable.",
            ),
            _histogram("storage_fill_seconds", "Time to write a transaction's items into LMDB."),
            _histogram("storage_sync_seconds", "Time to commit a transaction: two flushes to the disk."),
            _counter("storage_refused_total", "Transactions refused for want of room."),
            _gauge("map_used_bytes", "Bytes of the pages in use."),
            _gauge("map_limit_bytes", "The bound on the data: setting `map-size`."),
            _gauge("data_file_bytes", "Size of the data file; what exceeds the pages in use is free for reuse."),
            _gauge("disk_free_bytes", "Free space on the disk of the data directory."),
            _gauge("reserve_bytes", "Space in the map and on the disk that new writes must leave free."),
            _gauge("page_bytes", "Size of an LMDB page."),
            _gauge("space_entries", "Items in each of the engine's spaces.", "space"),
            _gauge("engine_readers", "Reader slots of LMDB that were ever used."),
            _gauge("engine_readers_limit", "Number of LMDB's reader slots."),
            _counter("engine_transactions_total", "Write transactions since the data directory was created."),
            _gauge("patrol_read_bytes", "Bytes that the current verification pass has read; starts again at 0."),
            _gauge("patrol_expected_bytes", "Approximate bytes that the whole pass will read."),
            _counter("patrol_passes_total", "Completed verification passes."),
            _gauge("patrol_pass_seconds", "Duration of the last completed pass.", when="after the first pass"),
            _counter("patrol_damaged_total", "Damaged places that passes found."),
            _counter("entries_examined_total", "Entries whose reads this node compared with its own data."),
            _counter(
                "entries_doubted_total",
                "Entries that were not acknowledged at once: this node's data differs, or is damaged.",
            ),
            _counter(
                "entries_disowned_total",
                "Entries that this leader gave up because its own data lacks a version that a follower has.",
            ),
            _gauge("remembered_requests", "Remembered results of requests, for retries."),
            _gauge("remembered_request_bytes", "Bytes of the remembered results."),
        ),
    ),
    Part(
        "The process",
        "As reported by the operating system, if it does.",
        (
            _gauge("process_resident_memory_bytes", "Resident memory."),
            _counter("process_cpu_seconds_total", "CPU time, user and system."),
            _gauge("process_open_fds", "Open file descriptors."),
            _gauge("process_max_fds", "Maximum number of open file descriptors."),
            _gauge("process_threads", "Threads of the interpreter."),
            _gauge("process_start_time_seconds", "Unix time at which the process started."),
            _histogram("loop_lag_seconds", "Delay of the event loop, sampled ten times a second."),
            _gauge("loop_lag_max_seconds", "Longest delay of the event loop in the last minute."),
            _gauge(
                "certificate_not_after_timestamp_seconds",
                "Unix time at which a certificate expires: this node's, and the authority's that lasts longest.",
                "certificate",
                when=_WITH_TLS,
            ),
        ),
    ),
)

DEFINITIONS: Final = {each.name: each for part in PARTS for each in part.definitions}
