"""Entries of the replicated log, decoded: the changes of each, their timestamps, and their requests.

An entry holds final bytes, in the order of their keys (``docs/formats/node.md``), and not the commands that made them.
But every command has a timestamp of its own. Its versions and its remembered result carry it, so it puts them together
again::

    items      row 7 ("UA") @5   row 7 ("ZZ") @4        commands   @4  request 1f..  row 7 ("ZZ")
    results    1f.. @4   2a.. @5                   ->              @5  request 2a..  row 7 ("UA")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from cortado.errors import DataLoss, InvalidArgument, NotFound
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.raft.configuration import Configuration
from cortado.raft.log import LogRecord
from cortado.raft.log_window import LogWindow
from cortado.raft.records import (
    KIND_CONFIGURATION,
    KIND_DATA,
    KIND_EXAMINED,
    KIND_REGISTRY,
    HardState,
    Record,
    decode_hard_state,
    decode_record,
)
from cortado.raft.registry import Registry
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.engine.interface import ReadTransaction, Space
from cortado.store.keys.decoded import KeyNames
from cortado.store.log_files.recovery import StoredGroup
from cortado.store.mvcc.evaluation import AcceptLoss, BumpEpoch, RaiseCeiling
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, request_shape
from cortado.store.mvcc.versions import expiry_of, payload_of, timestamp_of
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import applied_key, marker_key
from cortado.store.replica.write.log_entry import LogEntry
from cortado.store.replica.write.request_table.records import decode_remembered
from cortado.store.server.convert import timestamp_message
from cortado.store.server.inspection.state import Stored, bounded, stored_key

ENTRIES_MAX: Final = 1_000
CHANGES_MAX: Final = 1_000
CHANGES_DEFAULT: Final = 100
_INDEX_MAX: Final = (1 << 64) - 1
_PAGE_BYTES: Final = 1 << 20
_REPLY_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """The entries that a request asks for: ``[start, end)`` of the group, at most ``size`` of them."""

    start: int
    end: int
    size: int
    changes_max: int
    shape: bytes


@dataclass(frozen=True, slots=True)
class LogPart:
    """The answer of a log: its hard state, its first and last entry (0, 0 if it is empty), and some of the requested
    entries: from the first on, without a gap."""

    hard_state: HardState
    first: int
    last: int
    records: Sequence[LogRecord] = ()

    @classmethod
    def of_window(cls, window: LogWindow, question: LogQuestion) -> LogPart:
        """Return the durable part of the log of a running node, on its loop."""
        first, last = window.durable
        start, end = _asked(question, first)
        records = window.durable_entries(start, end, bytes_max=_PAGE_BYTES)
        return cls(window.hard_state, first, last, records)

    @classmethod
    def of_stored(cls, group: StoredGroup | None, question: LogQuestion) -> LogPart:
        """Return the part of log files that were read. Raises DataLoss if the hard state is damaged."""
        if group is None or group.hard_state is None:
            return cls(HardState(), 0, 0)
        hard_state = decode_hard_state(META_GROUP.group_id, group.hard_state.payload)
        if not group.entries:
            return cls(hard_state, 0, 0)
        first, last = group.entries[0].index, group.entries[-1].index
        start, end = _asked(question, first)
        return cls(hard_state, first, last, group.entries[start - first : max(0, end + 1 - first)])


def _asked(question: LogQuestion, first: int) -> tuple[int, int]:
    """Return the first and the last entry to be given, if the log begins with ``first``."""
    start = max(question.start, first)
    return start, min(question.end, start + question.size) - 1


def log_question(request: pb.ReadLogRequest) -> LogQuestion:
    """Return the question of a request. Raises InvalidArgument, InvalidPageToken, NotFound (the group)."""
    size = bounded("page_size", request.page_size, ENTRIES_MAX, ENTRIES_MAX)
    changes_max = bounded("changes_max", request.changes_max, CHANGES_DEFAULT, CHANGES_MAX)
    if 0 < request.to_index < request.from_index:
        raise InvalidArgument("to_index", f"must not be below from_index, {request.from_index}", str(request.to_index))
    if request.group_id not in (0, META_GROUP.group_id):
        raise NotFound("group", str(request.group_id))
    shape = request_shape("ReadLog", META_GROUP.group_id, request.from_index, request.to_index, changes_max)
    start, end = request.from_index, request.to_index or _INDEX_MAX
    if request.page_token:
        start = int.from_bytes(decode_token(request.page_token, shape).resume_within(_index(start), _index(end)))
    return LogQuestion(start, end, size, changes_max, shape)


def read_log(stored: Stored, question: LogQuestion, part: LogPart) -> pb.ReadLogResponse:
    """Return a page of entries, and the state that they belong to; the caller sets the header. Raises DataLoss if the
    applied state is damaged; a damaged entry is shown."""
    names = stored.names()
    piece = stored.begin_slice()
    with stored.engine.read() as txn:
        reply = pb.ReadLogResponse(state=_state(txn, part))
    reply_bytes = 0
    for record in part.records:
        if reply.entries and (piece.is_over or reply_bytes > _REPLY_BYTES):
            break
        entry = _entry(META_GROUP.group_id, record.index, record.payload, question.changes_max, names)
        reply_bytes += entry.ByteSize()
        reply.entries.append(entry)
    if reply.entries:
        following = reply.entries[-1].index + 1
        if following <= min(part.last, question.end - 1):
            reply.next_page_token = encode_token(PageToken(ZERO, _index(following)), question.shape)
    return reply


def _index(index: int) -> bytes:
    return index.to_bytes(8)


# --- the state -------------------------------------------------------------------------------------------------


def _state(txn: ReadTransaction, part: LogPart) -> pb.LogState:
    hard = part.hard_state
    encoded = txn.get(Space.META, applied_key(META_GROUP.group_id))
    applied = AppliedState.decode_stored(encoded)
    is_marked = txn.get(Space.META, marker_key(META_GROUP.group_id)) is not None
    return pb.LogState(
        group_id=META_GROUP.group_id,
        term=hard.term,
        voted_for=hard.voted_for,
        base_index=hard.base_index,
        base_term=hard.base_term,
        base_configuration=_configuration(hard.base_roster.configuration),
        base_registry=_registry(hard.base_roster.registry),
        first_index=part.first,
        last_index=part.last,
        applied_index=applied.index,
        applied_term=applied.term,
        last_timestamp=timestamp_message(applied.last_ts),
        ceiling=timestamp_message(applied.ceiling),
        epoch_began=timestamp_message(applied.epoch_began),
        request_floor=applied.request_floor,
        requests=applied.requests,
        request_bytes=applied.request_bytes,
        installing="a snapshot takes the data's place" if is_marked else "",
    )


def _configuration(configuration: Configuration) -> pb.LogConfiguration:
    return pb.LogConfiguration(voters=configuration.voters, learners=configuration.learners)


def _registry(registry: Registry) -> pb.LogRegistry:
    nodes = [
        pb.LogMember(
            node_id=each.node_id, address=each.address, storage_id=each.storage_id, peer_address=each.peer_address
        )
        for each in registry.nodes
    ]
    return pb.LogRegistry(nodes=nodes, removed=registry.removed)


# --- entries ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Command:
    items: list[tuple[bytes, bytes]] = field(default_factory=list)
    request_id: bytes = b""
    reply_bytes: int = 0


def _entry(group_id: int, index: int, value: bytes, changes_max: int, names: KeyNames) -> pb.LogEntry:
    shown = pb.LogEntry(index=index, stored_bytes=len(value))
    try:
        record = decode_record(group_id, index, value)
        shown.term = record.term
        _fill(shown, record, changes_max, names)
    except DataLoss as damage:
        shown.kind, shown.problem = "damaged", damage.message()
    return shown


def _fill(shown: pb.LogEntry, record: Record, changes_max: int, names: KeyNames) -> None:
    if record.kind == KIND_CONFIGURATION:
        shown.kind = "configuration"
        shown.configuration.CopyFrom(_configuration(record.configuration))
    elif record.kind == KIND_REGISTRY:
        shown.kind = "registry"
        shown.registry.CopyFrom(_registry(record.registry))
    elif record.kind in (KIND_DATA, KIND_EXAMINED):
        shown.kind = "data"
        _fill_data(shown, LogEntry.decode(record.taken_entry().payload.encode()), changes_max, names)
    else:
        shown.kind = "nothing"


def _fill_data(shown: pb.LogEntry, entry: LogEntry, changes_max: int, names: KeyNames) -> None:
    commands = _commands(entry)
    shown.after_index, shown.after_term = entry.after_index, entry.after_term
    shown.command_count, shown.change_count = len(commands), len(entry.items)
    shown.request_floor = entry.request_floor
    for control in entry.controls:
        match control:
            case BumpEpoch(epoch):
                shown.bump_epoch = epoch
            case RaiseCeiling(ceiling):
                shown.raise_ceiling.CopyFrom(timestamp_message(ceiling))
            case AcceptLoss(engine_key):
                shown.accepted_losses.append(engine_key)
            case _:
                assert_never(control)
    left = changes_max
    for ts in sorted(commands):
        if len(shown.commands) == changes_max:
            break
        command = commands[ts]
        shown.commands.append(
            pb.LogCommand(
                timestamp=timestamp_message(ts),
                request_id=command.request_id,
                reply_bytes=command.reply_bytes,
                changes=[_change(key, value, names) for key, value in command.items[:left]],
                change_count=len(command.items),
            )
        )
        left = max(0, left - len(command.items))


def _commands(entry: LogEntry) -> dict[Timestamp, _Command]:
    """Return the commands by their timestamps. An epoch or a ceiling is a command without items."""
    commands = {entry.first_ts: _Command(), entry.last_ts: _Command()}
    by_suffix: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for item in entry.items:
        by_suffix.setdefault(item[0][-TIMESTAMP_BYTES:], []).append(item)
    for suffix, items in by_suffix.items():
        commands.setdefault(timestamp_of(suffix), _Command()).items = items
    for request_id, encoded in entry.results:
        remembered = decode_remembered(META_GROUP.segment + request_id, encoded)
        command = commands.setdefault(remembered.ts, _Command())
        command.request_id, command.reply_bytes = request_id, len(remembered.reply)
    return commands


def _change(key: bytes, value: bytes, names: KeyNames) -> pb.LogChange:
    payload = payload_of(value)
    return pb.LogChange(
        key=stored_key(key, names),
        is_delete=payload is None,
        payload_bytes=len(payload or b""),
        expires_ms=expiry_of(value),
    )
