"""An entry of the log: final bytes, worked out by the leader for all commands of one batch.

::

    LogEntry  after (index, term)         the entry directly before it: the commands' state
              first_ts .. last_ts         of its commands; they rise strictly within an entry and along the log
              items                       engine keys and values, in key order
              results, request_floor      requests' results to remember, and the floor below which they are forgotten
              removal                     stored items that go before those are put, and the safepoints from here on
              controls                    a new epoch, a higher ceiling, accepted losses
              reads                       of some entries: the commands' reads, for followers to examine

Applying is mechanical. A replica that holds this entry holds exactly the log before it, so a command is applied to the
state against which it was worked out. The entry holds the engine's items byte for byte, checksums included. A follower
cuts it into slices and puts them; it knows nothing of keys, timestamps or commands.

As bytes an entry is ``cortado.internal.LogEntry`` (``proto/internal/log.proto``), golden files pin them. Within a
process a group of one never encodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss
from cortado.proto.internal import log_pb2
from cortado.raft.large_fields import Piece, large_field
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.packing import cut, cut_equal, join
from cortado.store.mvcc.drafts import Drafted
from cortado.store.mvcc.evaluation import AcceptLoss, BumpEpoch, Cleared, Control, Evaluation, RaiseCeiling, Removal
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.seen import NO_READS, Reads
from cortado.store.mvcc.versions import Item
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES

FORMAT: Final = 10

# A mutation's overhead: the timestamp behind a key, the kind and checksums of a value, and the two lengths.
MUTATION_OVERHEAD_BYTES: Final = 29
# The length of a removed key.
_REMOVED_OVERHEAD_BYTES: Final = 4
# A cleared range's fields, and the tags and lengths of their message.
_CLEARED_OVERHEAD_BYTES: Final = 16
# The two lengths of an item that is restored.
_RESTORED_OVERHEAD_BYTES: Final = 8
# A result's id, record and length, and its share of the entry's own fields.
COMMAND_OVERHEAD_BYTES: Final = 64
READS_BYTES_MAX: Final = 64 << 10
"""The most that an entry tells of its commands' reads; if there is more, it tells a part."""
NO_REMOVAL: Final = Removal()
ENTRY_OVERHEAD_BYTES: Final = READS_BYTES_MAX + (1 << 10)
"""The most that an entry adds to the :func:`command_bytes` of its commands."""
_OF_ITEMS: Final = [
    log_pb2.LogEntry.DESCRIPTOR.fields_by_name[name].number
    for name in ("keys", "key_lengths", "values", "value_lengths")
]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """All changes of one batch. A :class:`~cortado.raft.log.Payload`.

    ``items`` are engine keys and values, ``results`` request ids and their records, each in key order.
    ``request_floor``: ids below it are forgotten; empty: none are. ``controls`` are applied in their order, after the
    items; an epoch begins at ``last_ts``. ``reads``: a follower compares them with its own state
    (:mod:`cortado.store.replica.write.examining`). ``removal`` is applied before the items, its keys first.
    """

    after_index: int
    after_term: int
    first_ts: Timestamp
    last_ts: Timestamp
    items: Sequence[Item] = field(default_factory=list)
    results: list[Item] = field(default_factory=list)
    request_floor: bytes = b""
    controls: Sequence[Control] = ()
    reads: Reads = NO_READS
    removal: Removal = NO_REMOVAL
    size_bytes: int = field(default=0, compare=False)
    """About how much memory it takes. Not part of its content."""
    drafted: Drafted | None = field(default=None, compare=False, repr=False)
    """Its items, joined already; None if they are not."""

    def encode(self) -> bytes:
        before = log_pb2.LogEntry(
            format=FORMAT,
            after_index=self.after_index,
            after_term=self.after_term,
            first_timestamp=bytes(self.first_ts),
            last_timestamp=bytes(self.last_ts),
        )
        results, result_lengths = join([record for _, record in self.results])
        read_keys, read_key_lengths = join(self.reads.keys)
        read_ranges, read_range_lengths = join([bound for each in self.reads.ranges for bound in each])
        removed, removed_lengths = join(self.removal.keys)
        safepoints = self.removal.safepoints
        behind = log_pb2.LogEntry(
            request_ids=b"".join([request_id for request_id, _ in self.results]),
            results=results,
            result_lengths=result_lengths,
            request_floor=self.request_floor,
            controls=[_control_message(each) for each in self.controls],
            read_keys=read_keys,
            read_key_lengths=read_key_lengths,
            read_versions=b"".join(self.reads.versions),
            read_ranges=read_ranges,
            read_range_lengths=read_range_lengths,
            read_collected=b"" if self.reads.collected == ZERO else bytes(self.reads.collected),
            removed=removed,
            removed_lengths=removed_lengths,
            removed_densely=self.removal.is_dense,
            cleared=[
                log_pb2.Cleared(start=each.start, end=each.end, items_max=each.items_max)
                for each in self.removal.cleared
            ],
            safepoints=b"" if safepoints is None else safepoints.encode(),
        )
        pieces: list[Piece] = [before.SerializeToString(deterministic=True)]
        for number, content in zip(_OF_ITEMS, self._joined_items(), strict=True):
            pieces += large_field(number, content)
        pieces.append(behind.SerializeToString(deterministic=True))
        return b"".join(pieces)

    def _joined_items(self) -> Sequence[Piece]:
        """Return keys, their lengths, values, their lengths."""
        if self.drafted is not None:
            return self.drafted[1:]
        return *join([key for key, _ in self.items]), *join([value for _, value in self.items])

    @classmethod
    def decode(cls, encoded: bytes) -> LogEntry:
        """Decode an entry. Raises DataLoss on malformed bytes and on a format that this software does not know."""
        try:
            message = log_pb2.LogEntry.FromString(encoded)
        except DecodeError as malformed:
            raise DataLoss("a log entry", f"not a LogEntry: {malformed}") from malformed
        if message.format != FORMAT:
            raise DataLoss("a log entry", f"format {message.format} is unknown, this version reads {FORMAT}")
        if len(message.request_floor) not in (0, REQUEST_ID_BYTES):
            raise DataLoss("a log entry", f"a request floor of {len(message.request_floor)} bytes")
        return cls(
            message.after_index,
            message.after_term,
            _timestamp(message.first_timestamp),
            _timestamp(message.last_timestamp),
            _items(
                _cut(message.keys, message.key_lengths, "keys"), _cut(message.values, message.value_lengths, "values")
            ),
            _items(_cut_ids(message.request_ids), _cut(message.results, message.result_lengths, "results")),
            message.request_floor,
            [_control(each) for each in message.controls] if message.controls else (),
            _reads(message) if message.read_key_lengths or message.read_range_lengths else NO_READS,
            _removal(message) if message.removed_lengths or message.cleared or message.safepoints else NO_REMOVAL,
            len(encoded),
        )


def command_bytes(evaluation: Evaluation, reply: bytes = b"") -> int:
    """Return about how many bytes a command with this evaluation takes in an entry."""
    mutations, removal, restored = evaluation.mutations, evaluation.removal, evaluation.restored
    size_bytes = COMMAND_OVERHEAD_BYTES + len(reply)
    size_bytes += mutations.size_bytes + MUTATION_OVERHEAD_BYTES * len(mutations)
    if removal is not None:
        size_bytes += sum(map(len, removal.keys)) + _REMOVED_OVERHEAD_BYTES * len(removal.keys)
        size_bytes += sum(len(each.start) + len(each.end) + _CLEARED_OVERHEAD_BYTES for each in removal.cleared)
        if removal.safepoints is not None:
            size_bytes += len(removal.safepoints.encode())
    return size_bytes + sum(len(key) + len(value) + _RESTORED_OVERHEAD_BYTES for key, value in restored)


def _cut(joined: bytes, packed_lengths: bytes, what: str) -> tuple[bytes, ...]:
    try:
        return cut(joined, packed_lengths)
    except ValueError as contradiction:
        raise DataLoss("a log entry", f"{what}: {contradiction}") from contradiction


def _cut_ids(joined: bytes) -> tuple[bytes, ...]:
    try:
        return cut_equal(joined, REQUEST_ID_BYTES)
    except ValueError as contradiction:
        raise DataLoss("a log entry", f"request ids: {contradiction}") from contradiction


def _control_message(control: Control) -> log_pb2.Control:
    match control:
        case BumpEpoch(epoch):
            return log_pb2.Control(bump_epoch=log_pb2.BumpEpoch(epoch=epoch))
        case RaiseCeiling(ceiling):
            return log_pb2.Control(raise_ceiling=log_pb2.RaiseCeiling(timestamp=bytes(ceiling)))
        case AcceptLoss(engine_key, is_key_right):
            return log_pb2.Control(accept_loss=log_pb2.AcceptLoss(key=engine_key, is_key_right=is_key_right))
        case _:
            assert_never(control)


def _control(message: log_pb2.Control) -> Control:
    match message.WhichOneof("kind"):
        case "bump_epoch":
            return BumpEpoch(message.bump_epoch.epoch)
        case "raise_ceiling":
            return RaiseCeiling(_timestamp(message.raise_ceiling.timestamp))
        case "accept_loss":
            return AcceptLoss(message.accept_loss.key, message.accept_loss.is_key_right)
        case _:
            raise DataLoss("a log entry", "a control that this version does not know")


def _reads(message: log_pb2.LogEntry) -> Reads:
    keys = _cut(message.read_keys, message.read_key_lengths, "keys that were read")
    bounds = _cut(message.read_ranges, message.read_range_lengths, "ranges that were read")
    if len(message.read_versions) != len(keys) * TIMESTAMP_BYTES or len(bounds) % 2:
        problem = f"{len(keys)} keys were read, {len(message.read_versions)} bytes of versions, {len(bounds)} bounds"
        raise DataLoss("a log entry", problem)
    return Reads(
        keys,
        cut_equal(message.read_versions, TIMESTAMP_BYTES),
        list(zip(bounds[::2], bounds[1::2], strict=True)),
        _timestamp(message.read_collected) if message.read_collected else ZERO,
    )


def _removal(message: log_pb2.LogEntry) -> Removal:
    return Removal(
        _cut(message.removed, message.removed_lengths, "removed keys"),
        [Cleared(each.start, each.end, each.items_max) for each in message.cleared],
        Safepoints.decode(message.safepoints) if message.safepoints else None,
        message.removed_densely,
    )


def _items(keys: Sequence[bytes], values: Sequence[bytes]) -> list[Item]:
    if len(keys) != len(values):
        raise DataLoss("a log entry", f"{len(keys)} keys and {len(values)} values")
    return list(zip(keys, values, strict=True))


def _timestamp(encoded: bytes) -> Timestamp:
    if len(encoded) != TIMESTAMP_BYTES:
        raise DataLoss("a log entry", f"a timestamp of {len(encoded)} bytes")
    return Timestamp.from_bytes(encoded)
