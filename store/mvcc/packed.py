"""Payloads of many rows as two byte strings: no object for a row, unless it is asked for.

::

    payload 0 | payload 1 | ...      heads    their first bytes (a stored row's schema id), head_bytes of each
                                     bodies   what follows, end to end;  ends  where each one ends in it

So if all rows have one schema, their bodies are an Avro block as they lie here. The kernel that packed them may come
along, to make columns of them without the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add
from typing import overload

import numpy as np
from numpy.typing import NDArray

from cortado.store.keys.packing import cut, cut_equal
from cortado.store.mvcc.walks import ColumnKernel


class PackedPayloads(Sequence[bytes]):
    """A sequence of payloads. ``ends`` are places in ``bodies``, ascending; ``head_bytes`` is the same for all;
    ``kernel`` makes columns of the bodies, if they are Avro's."""

    __slots__ = ("_cut", "bodies", "ends", "head_bytes", "heads", "kernel")

    def __init__(
        self,
        heads: bytes,
        head_bytes: int,
        bodies: bytes,
        ends: NDArray[np.int64],
        kernel: ColumnKernel | None = None,
    ) -> None:
        self.heads = heads
        self.head_bytes = head_bytes
        self.bodies = bodies
        self.ends = ends
        self.kernel = kernel
        self._cut: Sequence[bytes] | None = None

    def lengths(self) -> NDArray[np.uint32]:
        """Return the lengths of the bodies."""
        return np.diff(self.ends, prepend=0).astype(np.uint32)

    def first(self, count: int) -> PackedPayloads:
        """Return the first rows alone."""
        if count >= len(self):
            return self
        end = int(self.ends[count - 1]) if count else 0
        heads = self.heads[: count * self.head_bytes]
        return PackedPayloads(heads, self.head_bytes, self.bodies[:end], self.ends[:count], self.kernel)

    def take(self, rows: Sequence[int]) -> PackedPayloads:
        """Some rows, by their places, in the order given."""
        places = np.asarray(rows, np.intp)
        ends = self.ends[places]
        starts = np.where(places > 0, self.ends[places - 1], 0)
        bodies = self.bodies
        joined = b"".join([bodies[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        heads = np.frombuffer(self.heads, f"V{self.head_bytes}")[places].tobytes() if self.head_bytes else b""
        return PackedPayloads(heads, self.head_bytes, joined, np.cumsum(ends - starts), self.kernel)

    def as_list(self) -> Sequence[bytes]:
        """Return each payload, made once."""
        if self._cut is None:
            bodies = cut(self.bodies, self.lengths().astype("<u4", copy=False).tobytes())
            heads = cut_equal(self.heads, self.head_bytes) if self.head_bytes else ()
            self._cut = list(map(add, heads, bodies)) if self.head_bytes else bodies
        return self._cut

    def __eq__(self, other: object) -> bool:
        """Compare as a list of payloads does."""
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.as_list())

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(place, slice) and place.start is None and place.step is None and (place.stop or 0) >= 0:
            return self if place.stop is None else self.first(place.stop)
        return self.as_list()[place]
