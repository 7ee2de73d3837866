"""Requests to the scan kernel about new rows: the engine's items of many puts, without an object for a row
(:mod:`cortado.store.mvcc.kernel`).

::

    columns of the key, bodies  ->  keys, and their order           once, ahead of the commit
    keys, bodies, a timestamp   ->  items end to end, in key order  at the commit

These types are not in the kernel's package, since they are named also without a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from cortado.store.mvcc.walks import ColumnKernel


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumn:
    """One part of the keys of many rows.

    ``values`` are encoded already, of one width: a matrix of bytes, a row of it for each row. Or, if there are
    ``offsets``, texts that lie end to end, their zeros not escaped: ``values[offsets[i]:offsets[i + 1]]``.
    ``validity`` is False for a null, and None if no row is null."""

    tag: int
    values: NDArray[Any]
    offsets: NDArray[Any] | None = None
    is_descending: bool = False
    validity: NDArray[Any] | None = None


class KeysInOrder(NamedTuple):
    """Logical keys end to end, the end of each, and the rows' ``places`` in the order of their keys."""

    joined: bytes
    ends: NDArray[Any]
    places: NDArray[Any]


class Tails(NamedTuple):
    """A piece for each row, end to end, and their ends: it follows the parts of each key, or of those alone that have
    a null part."""

    joined: bytes
    ends: NDArray[Any]
    of_rows_with_null: bool = False


class RowMaker(ColumnKernel, Protocol):
    def lay_keys(
        self, prefix: bytes, parts: Sequence[KeyColumn], rows: int, tails: Tails | None = None
    ) -> KeysInOrder | None:
        """Return the keys of rows, at least one, which begin with ``prefix``. None if one is too long, or two are
        equal."""

    def order(self, pieces: Sequence[bytes | bytearray], ends: NDArray[Any]) -> NDArray[Any] | None:
        """Return the order of keys, which lie end to end in the ``pieces``. None if two are equal."""

    def encode_puts(
        self, keys: KeysInOrder, suffix: bytes, head: bytes, bodies: bytes, body_ends: NDArray[Any]
    ) -> tuple[bytearray, bytearray]:
        """Return the engine's keys and values of puts, each end to end, in the order of their keys. A value's content
        is ``head``, which begins with its kind, and the row's body; bodies lie end to end and end at ``body_ends``."""

    def gather(self, joined: bytes | bytearray, ends: NDArray[Any], places: NDArray[Any]) -> bytearray:
        """Return pieces that lie end to end, in the order of ``places``."""
