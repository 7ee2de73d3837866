"""Samples of the defined metrics from a node's present state, computed on demand on the node's loop.

It only reads. A scrape costs a few milliseconds of the loop, most of it LMDB's and the operating system's.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Final

from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.host.host import Host
from cortado.store.host.status import NodeStatus, node_status
from cortado.store.observe.definitions import DEFINITIONS
from cortado.store.observe.families import Family, Found, families
from cortado.store.observe.lag import LogClock
from cortado.store.observe.process import process_numbers
from cortado.store.observe.readiness import Readiness, Reason
from cortado.store.observe.requests import Requests
from cortado.store.observe.stored_sizes import StoredSizes
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.transport import PeerTransport
from cortado.store.quotas.meters import Meters
from cortado.store.quotas.quota import KINDS
from cortado.store.replica.feed.watches import Watches
from cortado.store.replica.replica import Role
from cortado.version import __version__

_MS: Final = 1000.0


@dataclass(slots=True, eq=False)
class Sources:
    """The sources of samples. ``calls_use`` gives open streams of calls and the calls in flight on them."""

    host: Host
    transport: PeerTransport
    engine: LmdbEngine
    requests: Requests
    readiness: Readiness
    log_clock: LogClock
    calls_use: Callable[[], tuple[int, int]]
    meters: Meters
    sizes: StoredSizes
    certificates: Certificates | None
    monotonic_ms: Callable[[], float]


def collect(sources: Sources | None) -> list[Family]:
    """Return all there is, in the order of the definitions. Without sources, of a node that has not started: the
    process."""
    return families(DEFINITIONS, _process() if sources is None else _all(sources))


def _all(sources: Sources) -> Iterator[Found]:
    status = node_status(sources.host)
    yield from _node(sources, status)
    yield from _requests(sources.requests)
    yield from _queues(sources)
    yield from _quotas(sources.meters)
    yield from _sizes(sources.sizes)
    yield from _writes_and_reads(sources)
    yield from _watches(sources.host.meta.watches)
    yield from _collection(sources.host)
    yield from _large_transactions(sources.host)
    yield from _jobs(sources.host)
    yield from _replication(sources, status)
    yield from _members(sources)
    yield from _peers(sources)
    yield from _clock(sources, status)
    yield from _log_files(sources)
    yield from _storage(sources, status)
    yield from _process()
    yield from _loop_and_certificates(sources)


def _node(sources: Sources, status: NodeStatus) -> Iterator[Found]:
    identity = sources.host.process.identity
    yield "build_info", (__version__, platform.python_version(), identity.cluster_id, identity.node_id), 1
    reasons = {problem.reason for problem in sources.readiness.problems()}
    yield "ready", (), not reasons
    for reason in Reason:
        yield "not_ready", (reason.value,), reason in reasons
    yield "uptime_seconds", (), status.uptime_ms / _MS


def _requests(requests: Requests) -> Iterator[Found]:
    for name, measures in requests.methods.items():
        ends = "streams_total" if measures.is_stream else "requests_total"
        for code, count in measures.ends():
            yield ends, (name, code), count
        if not (measures.ok or measures.codes or measures.open or measures.received_bytes):
            continue
        yield "request_received_bytes_total", (name,), measures.received_bytes
        yield "request_sent_bytes_total", (name,), measures.sent_bytes
        if measures.is_stream:
            yield "streams_open", (name,), measures.open
            yield "stream_replies_total", (name,), measures.replies
        else:
            yield "request_duration_seconds", (name,), measures.durations
    yield "slow_requests_total", (), requests.slow_calls
    for resource, count in requests.refusals.items():
        yield "refusals_total", (resource,), count


def _queues(sources: Sources) -> Iterator[Found]:
    driver = sources.host.meta.driver
    for gate in sources.host.queues:
        use, queue = gate.use(), (gate.name.replace(" ", "_"),)
        yield "queue_entries", queue, use.count
        yield "queue_entries_limit", queue, use.count_max
        yield "queue_bytes", queue, use.bytes
        yield "queue_bytes_limit", queue, use.bytes_max
        yield "queue_refused_total", queue, gate.refused
    messages, size_bytes = driver.inbox.use
    yield "queue_entries", ("peer_inbox",), messages
    yield "queue_bytes", ("peer_inbox",), size_bytes
    streams, calls = sources.calls_use()
    yield "queue_entries", ("call_streams",), streams
    yield "queue_entries", ("calls_of_streams",), calls


def _sizes(sizes: StoredSizes) -> Iterator[Found]:
    for kind, measured in (("table", sizes.tables), ("database", sizes.databases)):
        for name, (rows, size_bytes) in measured.items():
            yield f"{kind}_rows", (name,), rows
            yield f"{kind}_bytes", (name,), size_bytes


def _quotas(meters: Meters) -> Iterator[Found]:
    for kind in KINDS:
        yield "quotas", (kind,), meters.count(kind)
    for (kind, limit), refused in meters.refusals.items():
        yield "quota_refused_total", (kind, limit), refused
    fullest = meters.fullest()
    if fullest is not None:
        yield "quota_stored_fullest_ratio", (), fullest


def _writes_and_reads(sources: Sources) -> Iterator[Found]:
    limits, replica = sources.host.process.limits, sources.host.meta
    driver, writes = replica.driver, replica.driver.pipeline.measures
    in_line, in_flight = driver.pipeline.use
    yield "writes_in_line", (), in_line
    yield "write_wait_seconds", (), writes.waiting
    yield "rounds_total", (), driver.measures.rounds
    yield "commits_total", ("committed",), writes.commits.committed
    yield "commits_total", ("refused",), writes.commits.refused
    for kind, count in writes.commits.conflicts.items():
        yield "commits_total", (f"{kind} conflict",), count
    yield "commits_evaluated_again_total", (), writes.commits.evaluated_again
    yield "entry_commands", (), writes.commands
    yield "entry_bytes", (), writes.bytes
    yield "entry_evaluate_seconds", (), writes.evaluating
    yield "entry_commit_seconds", (), writes.committing
    yield "entry_apply_seconds", (), writes.applying
    yield "entries_in_flight", (), in_flight
    yield "entries_in_flight_limit", (), limits.entries_in_flight_max
    yield "entries_in_flight_bytes", (), driver.pipeline.appended_bytes
    yield "entries_in_flight_bytes_limit", (), limits.entries_in_flight_bytes_max
    pacing = driver.compaction.pacing
    yield "writes_slowed", (), pacing.rate != inf
    yield "writes_slowed_seconds_total", (), pacing.delayed_ms / _MS
    yield "read_rounds_total", (), driver.read_index.begun
    yield "read_wait_seconds", (), replica.reads.measures.waits
    yield "read_waits_failed_total", (), replica.reads.measures.failed
    yield "stale_reads_refused_total", (), replica.reads.measures.stale_refused
    kept = replica.store.kept
    yield "kept_columns_bytes", (), kept.bytes
    yield "kept_columns_slices_total", ("found",), kept.hits
    yield "kept_columns_slices_total", ("read",), kept.misses


def _watches(of: Watches) -> Iterator[Found]:
    watches = of.statistics()
    yield "watches_open", (), watches.watches
    yield "watch_ranges", (), watches.ranges
    yield "watches_catching_up", (), watches.catching_up
    yield "watch_queued_events", (), watches.queued_events
    yield "watch_queued_bytes", (), watches.queued_bytes
    yield "watch_recent_bytes", (), watches.recent_bytes
    yield "watch_events_total", (), watches.events
    yield "watch_overflows_total", (), watches.overflows
    yield "watch_passes_total", (), watches.passes
    yield "watch_passes_by_index_total", (), watches.passes_by_index
    yield "watch_lag_seconds", (), watches.resolved_lag_ms / _MS


def _collection(host: Host) -> Iterator[Found]:
    leases, collector = host.meta.leases, host.meta.collector
    yield "safepoint_lag_seconds", (), collector.lag_ms / _MS
    yield "collected_items_total", (), collector.removed
    if host.meta.role is Role.LEADER:
        yield "collection_pieces_pending", (), collector.pending
        oldest = leases.oldest()
        yield "leases", (), leases.count
        yield "lease_oldest_seconds", (), 0 if oldest is None else leases.kept_ms(oldest) / _MS
    yield "leases_expired_total", (), leases.ended


def _large_transactions(host: Host) -> Iterator[Found]:
    all_of_them = host.meta.store.unresolved.all.values()
    open_now = sum(each.is_open for each in all_of_them)
    yield "large_transactions_open", (), open_now
    yield "large_transactions_unresolved", (), len(all_of_them) - open_now
    yield "large_transaction_items_resolved_total", (), host.meta.large_transactions.placed


def _jobs(host: Host) -> Iterator[Found]:
    jobs = host.meta.jobs
    if host.meta.role is Role.LEADER:
        yield "jobs_running", (), len(jobs.running)
        yield "job_rows_done", (), sum(each.done for each in jobs.running)
        yield "job_rows_expected", (), sum(each.total for each in jobs.running)
    yield "job_steps_total", (), jobs.steps


def _replication(sources: Sources, status: NodeStatus) -> Iterator[Found]:
    replica = sources.host.meta
    log, driver = replica.log, replica.driver
    for role in Role:
        yield "role", (role.value,), role is status.role
    yield "has_leader", (), bool(status.leader)
    yield "may_lead", (), not driver.leadership.vetoes
    yield "term", (), status.term
    yield "log_last_index", (), status.last_index
    yield "log_commit_index", (), log.durable_commit_index
    yield "log_applied_index", (), status.applied_index
    entries, size_bytes = log.window.size
    yield "log_entries", (), entries
    yield "log_bytes", (), size_bytes
    fresh_ms = sources.monotonic_ms() if driver.is_alone else log.fresh_as_of_ms
    if fresh_ms is not None:
        yield "staleness_seconds", (), max(sources.monotonic_ms() - fresh_ms, 0.0) / _MS
    yield "leader_changes_total", (), driver.leadership.changes
    yield "terms_led_total", (), driver.measures.terms_led
    elections = log.election_counts
    yield "pre_votes_total", (), elections.pre_vote_rounds
    yield "campaigns_total", (), elections.campaigns
    yield "votes_given_total", (), elections.votes_given
    yield "log_messages_refused_total", (), log.refusals.total
    yield "log_disputes", (), len(log.disputes.open)
    yield "snapshots_made_total", (), replica.snapshot_sender.made
    yield "snapshot_sent_bytes_total", (), replica.snapshot_sender.sent_bytes
    yield "snapshots_installed_total", (), replica.snapshot_receiver.installed
    repairs = replica.integrity.repairs.counts
    yield "damaged_items", (), repairs.damaged
    yield "repairs_total", (), repairs.repaired
    yield "repaired_items_total", (), repairs.items_put + repairs.items_deleted
    yield "snapshot_installing", (), replica.is_installing


def _members(sources: Sources) -> Iterator[Found]:
    replica = sources.host.meta
    configuration = replica.configuration
    voters = len(configuration.voters)
    yield "members", ("voter",), voters
    yield "members", ("learner",), len(configuration.members) - voters
    last_index, now_ms = replica.log.last[0], sources.monotonic_ms()
    for progress in replica.member_progress():
        member = (progress.node_id,)
        yield "member_lag_entries", member, max(last_index - progress.match_index, 0)
        yield "member_lag_seconds", member, sources.log_clock.behind_ms(progress.match_index, now_ms) / _MS
        yield "member_silence_seconds", member, max(progress.last_heard_ms, 0.0) / _MS
        yield "member_needs_snapshot", member, progress.needs_snapshot
        if progress.room is not None:
            yield "member_room_bytes", member, progress.room.bytes


def _peers(sources: Sources) -> Iterator[Found]:
    for each in sources.transport.status():
        peer, traffic = (each.node_id,), each.traffic
        yield "peer_connected", peer, each.is_connected
        yield "peer_connections_total", peer, traffic.connections
        yield "peer_sent_bytes_total", peer, traffic.sent_bytes
        yield "peer_received_bytes_total", peer, traffic.received_bytes
        yield "peer_sent_batches_total", peer, traffic.sent_batches
        yield "peer_received_batches_total", peer, traffic.received_batches
        yield "peer_dropped_total", peer, each.dropped
        yield "peer_queue_messages", peer, each.waiting_messages
        yield "peer_queue_bytes", peer, each.waiting_bytes


def _clock(sources: Sources, status: NodeStatus) -> Iterator[Found]:
    clock, applied, time = sources.host.process.clock, sources.host.meta.applied, sources.host.process.host_time
    for each in status.clock_offsets:
        yield "clock_offset_low_seconds", (each.node_id,), each.low_ms / _MS
        yield "clock_offset_high_seconds", (each.node_id,), each.high_ms / _MS
    yield "clock_offset_limit_seconds", (), clock.max_offset_ms / _MS
    yield "clock_ahead_seconds", (), (clock.reading().wall_ms - time.wall_ms()) / _MS
    yield "clock_jump_seconds", (), time.jump_ms() / _MS
    yield "clock_epoch", (), clock.epoch
    yield "clock_ceiling_timestamp_seconds", (), applied.ceiling.wall_ms / _MS
    yield "clock_last_timestamp_seconds", (), applied.last_ts.wall_ms / _MS


def _log_files(sources: Sources) -> Iterator[Found]:
    host = sources.host
    use, writing = host.process.log_files.use(), host.meta.driver.writer.measures
    yield "log_write_seconds", (), writing.transactions
    yield "log_write_refused_total", (), writing.refused
    yield "log_segments", (), use.segments
    yield "log_disk_bytes", (), use.size_bytes
    yield "log_segment_free_bytes", (), use.free_bytes
    yield "log_oldest_segment", (), use.oldest_segment
    yield "log_newest_segment", (), use.newest_segment


def _storage(sources: Sources, status: NodeStatus) -> Iterator[Found]:
    engine, storing = sources.engine, sources.host.meta.driver.applier.measures
    applied = sources.host.meta.applied
    yield "storage_writable", (), not status.refused_for
    yield "storage_transaction_seconds", (), storing.transactions
    yield "storage_fill_seconds", (), engine.measures.filling
    yield "storage_sync_seconds", (), engine.measures.committing
    yield "storage_refused_total", (), storing.refused
    yield "map_used_bytes", (), status.map_used_bytes
    yield "map_limit_bytes", (), status.map_limit_bytes
    use = engine.data_file_use()
    yield "data_file_bytes", (), use.file_bytes
    yield "disk_free_bytes", (), status.disk_free_bytes
    yield "reserve_bytes", (), engine.reserve_bytes
    yield "page_bytes", (), use.page_bytes
    for space, entries in use.entries.items():
        yield "space_entries", (space,), entries
    yield "engine_readers", (), use.readers
    yield "engine_readers_limit", (), use.readers_max
    yield "engine_transactions_total", (), use.transaction_id
    patrol = sources.host.patrol.progress
    yield "patrol_read_bytes", (), patrol.read_bytes
    yield "patrol_expected_bytes", (), patrol.expected_bytes
    yield "patrol_passes_total", (), patrol.passes
    if patrol.last_pass_ms is not None:
        yield "patrol_pass_seconds", (), patrol.last_pass_ms / _MS
    yield "patrol_damaged_total", (), patrol.damaged
    yield "entries_examined_total", (), sources.host.meta.integrity.examiner.examined
    yield "entries_doubted_total", (), sources.host.meta.integrity.examiner.doubted
    yield "entries_disowned_total", (), sources.host.meta.integrity.disowned
    yield "remembered_requests", (), applied.requests
    yield "remembered_request_bytes", (), applied.request_bytes


def _process() -> Iterator[Found]:
    for name, value in process_numbers():
        yield name, (), value


def _loop_and_certificates(sources: Sources) -> Iterator[Found]:
    lag = sources.host.loop_delay
    yield "loop_lag_seconds", (), lag.delays
    yield "loop_lag_max_seconds", (), lag.max_ms() / _MS
    if sources.certificates is not None:
        material = sources.certificates.current()
        yield "certificate_not_after_timestamp_seconds", ("node",), material.not_after_s
        yield "certificate_not_after_timestamp_seconds", ("authority",), material.authority_not_after_s
