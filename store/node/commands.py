"""What an entry of the log says: final mutations, worked out to the byte, one command per proposal.

::

    LogEntry  after (index, term)        the entry directly before it: what the commands were worked out against
      Command  ts 0.1763643600000.4      puts and deletes, the reply to remember, perhaps a control
      Command  ts 0.1763643600000.5      ...

Timestamps rise strictly within an entry and along the log. Applying is mechanical: a replica that holds this entry
holds exactly the log before it, so what a command was worked out against is what it is applied to.

As bytes an entry is ``cortado.internal.LogEntry`` (``proto/internal/log.proto``), golden files pin them. Within a
process a group of one never encodes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss
from cortado.proto.internal import log_pb2
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import BumpEpoch, RaiseCeiling
from cortado.store.mvcc.mutations import Mutations

FORMAT: Final = 1
_DELETE: Final = 0xFFFFFFFF

# A key's and a payload's length words, the timestamp, and protobuf's own tags: about what a mutation adds.
MUTATION_OVERHEAD_BYTES: Final = 16
COMMAND_OVERHEAD_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Command:
    """One proposal's effect at ``ts``. ``reply`` is remembered under ``request_id`` where that is not empty."""

    ts: Timestamp
    mutations: Mutations
    request_id: bytes = b""
    request_hash: bytes = b""
    reply: bytes = b""
    control: BumpEpoch | RaiseCeiling | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The commands of one turn, in the order of their timestamps. A :class:`~cortado.raft.log.Payload`."""

    after_index: int
    after_term: int
    commands: Sequence[Command]

    def encode(self) -> bytes:
        message = log_pb2.LogEntry(format=FORMAT, after_index=self.after_index, after_term=self.after_term)
        message.commands.extend(map(_encode_command, self.commands))
        return message.SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, encoded: bytes) -> LogEntry:
        """Raises DataLoss on malformed bytes and on a format that this version of the software does not know."""
        try:
            message = log_pb2.LogEntry.FromString(encoded)
        except DecodeError as malformed:
            raise DataLoss("a log entry", f"not a LogEntry: {malformed}") from malformed
        if message.format != FORMAT:
            raise DataLoss("a log entry", f"format {message.format} is unknown, this version reads {FORMAT}")
        return cls(message.after_index, message.after_term, tuple(map(_decode_command, message.commands)))


def command_bytes(mutations: Mutations, reply: bytes = b"") -> int:
    """About how many bytes a command with these mutations takes in an entry."""
    payload_bytes = sum(len(payload) for payload in mutations.payloads if payload is not None)
    key_bytes = sum(map(len, mutations.keys))
    return (
        COMMAND_OVERHEAD_BYTES + key_bytes + payload_bytes + len(reply) + MUTATION_OVERHEAD_BYTES * len(mutations.keys)
    )


def _encode_command(command: Command) -> log_pb2.Command:
    mutations = command.mutations
    message = log_pb2.Command(
        timestamp=bytes(command.ts),
        keys=b"".join(mutations.keys),
        key_lengths=_pack_lengths([len(key) for key in mutations.keys]),
        payloads=b"".join(payload for payload in mutations.payloads if payload is not None),
        payload_lengths=_pack_lengths([_DELETE if each is None else len(each) for each in mutations.payloads]),
        request_id=command.request_id,
        request_hash=command.request_hash,
        reply=command.reply,
    )
    match command.control:
        case BumpEpoch(epoch):
            message.bump_epoch = epoch
        case RaiseCeiling(ceiling):
            message.raise_ceiling = bytes(ceiling)
    return message


def _decode_command(message: log_pb2.Command) -> Command:
    if len(message.timestamp) != TIMESTAMP_BYTES:
        raise DataLoss("a log entry", f"a timestamp of {len(message.timestamp)} bytes")
    keys = _split(message.keys, _unpack_lengths(message.key_lengths), "keys")
    payloads = _split(message.payloads, _unpack_lengths(message.payload_lengths), "payloads")
    if len(keys) != len(payloads) or None in keys:
        raise DataLoss("a log entry", f"{len(keys)} keys and {len(payloads)} payloads")
    control: BumpEpoch | RaiseCeiling | None = None
    match message.WhichOneof("control"):
        case "bump_epoch":
            control = BumpEpoch(message.bump_epoch)
        case "raise_ceiling":
            control = RaiseCeiling(Timestamp.from_bytes(message.raise_ceiling))
    return Command(
        ts=Timestamp.from_bytes(message.timestamp),
        mutations=Mutations([LogicalKey(key) for key in keys if key is not None], payloads),
        request_id=message.request_id,
        request_hash=message.request_hash,
        reply=message.reply,
        control=control,
    )


def _pack_lengths(lengths: list[int]) -> bytes:
    return struct.pack(f"<{len(lengths)}I", *lengths)


def _unpack_lengths(packed: bytes) -> tuple[int, ...]:
    if len(packed) % 4:
        raise DataLoss("a log entry", f"{len(packed)} bytes of lengths are not a multiple of 4")
    return struct.unpack(f"<{len(packed) // 4}I", packed)


def _split(joined: bytes, lengths: Sequence[int], what: str) -> list[bytes | None]:
    """Cut ``joined`` into pieces of ``lengths``; None for a delete, which takes no bytes."""
    ends = list(accumulate((0 if each == _DELETE else each for each in lengths), initial=0))
    if ends[-1] != len(joined):
        raise DataLoss("a log entry", f"{what} have {len(joined)} bytes, their lengths say {ends[-1]}")
    return [
        None if length == _DELETE else joined[start:end]
        for length, (start, end) in zip(lengths, pairwise(ends), strict=True)
    ]
