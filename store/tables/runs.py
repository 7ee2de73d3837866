"""Runs: stored rows in scan order, as few Avro blocks as their schemas allow.

A scan that neither filters nor projects never looks into a row. It takes the payloads of a slice, cuts the schema id
off each, and joins the bodies, which is a valid Avro block of that schema. If the writer's schema changes from one row
to the next, a new run begins::

    payloads   [3|body] [3|body] [5|body] [3|body]
    runs       (3: body body)  (5: body)  (3: body)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Final, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.walks import ColumnKernel
from cortado.store.tables.rows import SCHEMA_ID_BYTES

Lengths: TypeAlias = NDArray[np.uint32]

PROJECTED: Final = 0
"""The schema id of rows in a schema that is not registered: a projection's."""

_head = itemgetter(slice(0, SCHEMA_ID_BYTES))
_body = itemgetter(slice(SCHEMA_ID_BYTES, None))


@dataclass(frozen=True, slots=True)
class Run:
    """Avro ``bodies`` of one schema end to end, ``lengths`` a row, and, if asked for, ``versions``: the commit
    timestamp of each row, 12 bytes a row as ``bytes(Timestamp)``."""

    schema_id: int
    bodies: bytes
    lengths: Lengths
    versions: bytes = b""

    def __len__(self) -> int:
        return len(self.lengths)

    def timestamps(self) -> list[Timestamp]:
        """Return the timestamp of each row, if versions were asked for."""
        step = TIMESTAMP_BYTES
        return [Timestamp.from_bytes(self.versions[at : at + step]) for at in range(0, len(self.versions), step)]


def split_runs(payloads: Sequence[bytes], versions: bytes = b"") -> list[Run]:
    """Runs of these row payloads, in their order. Raises DataLoss for a payload without a schema id."""
    if not payloads:
        return []
    if _has_heads(payloads):
        ids = np.frombuffer(payloads.heads, dtype=">u4")
        ends, lengths = payloads.ends, payloads.lengths()
        starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(payloads)]
        return [
            Run(
                int(ids[start]),
                payloads.bodies[int(ends[start - 1]) if start else 0 : int(ends[end - 1])],
                lengths[start:end],
                versions[start * TIMESTAMP_BYTES : end * TIMESTAMP_BYTES],
            )
            for start, end in pairwise(starts)
        ]
    heads = list(map(_head, payloads))
    if len(set(heads)) == 1:
        return [_run(heads[0], payloads, versions)]
    ids = np.frombuffer(_joined_heads(heads), dtype=">u4")
    starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(payloads)]
    return [
        _run(heads[start], payloads[start:end], versions[start * TIMESTAMP_BYTES : end * TIMESTAMP_BYTES])
        for start, end in pairwise(starts)
    ]


def rows_by_schema(payloads: Sequence[bytes]) -> dict[int, Sequence[int]]:
    """Which rows each schema wrote, wherever they stand. Raises DataLoss for a payload without a schema id."""
    if _has_heads(payloads):
        ids = np.frombuffer(payloads.heads, dtype=">u4")
        if payloads and (ids == ids[0]).all():
            return {int(ids[0]): range(len(payloads))}
        return {int(schema_id): np.flatnonzero(ids == schema_id).tolist() for schema_id in np.unique(ids)}
    heads = list(map(_head, payloads))
    if len(set(heads)) == 1:
        return {_schema_id_of(heads[0]): range(len(payloads))}
    ids = np.frombuffer(_joined_heads(heads), dtype=">u4")
    return {int(schema_id): np.flatnonzero(ids == schema_id).tolist() for schema_id in np.unique(ids)}


def join_bodies(payloads: Sequence[bytes]) -> tuple[bytes, Lengths]:
    """Return the Avro bodies of row payloads end to end, and their lengths."""
    if _has_heads(payloads):
        return payloads.bodies, payloads.lengths()
    lengths = np.fromiter(map(len, payloads), dtype=np.uint32, count=len(payloads)) - np.uint32(SCHEMA_ID_BYTES)
    return b"".join(map(_body, payloads)), lengths


def take_rows(payloads: Sequence[bytes], rows: Sequence[int]) -> Sequence[bytes]:
    """Some of the payloads, by their places in rising order."""
    if len(rows) == len(payloads):
        return payloads
    return payloads.take(rows) if _has_heads(payloads) else [payloads[row] for row in rows]


def kernel_of(payloads: Sequence[bytes]) -> ColumnKernel | None:
    """Return the kernel that makes columns of them, and groups by those, if the scan kernel packed them."""
    return payloads.kernel if isinstance(payloads, PackedPayloads) else None


def _has_heads(payloads: Sequence[bytes]) -> TypeGuard[PackedPayloads]:
    """Return whether their schema ids lie apart from their bodies already."""
    return isinstance(payloads, PackedPayloads) and payloads.head_bytes == SCHEMA_ID_BYTES


def _run(head: bytes, payloads: Sequence[bytes], versions: bytes) -> Run:
    bodies, lengths = join_bodies(payloads)
    return Run(_schema_id_of(head), bodies, lengths, versions)


def _schema_id_of(head: bytes) -> int:
    if len(head) != SCHEMA_ID_BYTES:
        raise DataLoss("row payload", f"{len(head)} bytes, expected a schema id of {SCHEMA_ID_BYTES} and a body")
    return int.from_bytes(head)


def _joined_heads(heads: Sequence[bytes]) -> bytes:
    joined = b"".join(heads)
    if len(joined) != len(heads) * SCHEMA_ID_BYTES:
        short = min(map(len, heads))
        raise DataLoss("row payload", f"{short} bytes, expected a schema id of {SCHEMA_ID_BYTES} and a body")
    return joined
