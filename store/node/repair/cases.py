"""What is known of the damage of one replica, a case each, as values."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from cortado.store.mvcc.damage import Damage


@dataclass(slots=True)
class Case:
    """One damage that is known. ``problem`` says why it is not repaired yet; it ``is_lost`` where every other member
    has answered and none has a whole copy of ``keys``, which are those that are damaged here; of ``right_keys`` it is
    known that they are as they were written. It ``is_known`` where nothing else of the range is in doubt. ``wanted``
    are versions that another member has and that are not here, though no checksum says so."""

    damage: Damage
    due_ms: float = 0.0
    tries: int = 0
    problem: str = ""
    is_lost: bool = False
    is_known: bool = False
    keys: frozenset[bytes] = frozenset()
    right_keys: frozenset[bytes] = frozenset()
    wanted: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Left:
    """Why a range is not whole yet, and whether all other members have said that they cannot help. ``right_keys`` are
    those that some replica's checksum of a key says are as they were written. Where all damaged ones are, it
    ``is_known`` that nothing else is in doubt, unless one stands out of its place: searches go wrong beside it."""

    problem: str
    is_lost: bool
    is_known: bool
    right_keys: Set[bytes]


@dataclass(frozen=True, slots=True)
class RepairCounts:
    """``damaged`` is of now; the others since the start."""

    damaged: int
    repaired: int
    items_put: int
    items_deleted: int


@dataclass(frozen=True, slots=True)
class DamagedItem:
    """A stored ``key`` that is not what was written (empty where it is not known), as people read it, and why it is not
    repaired yet; it ``is_lost`` where every other member has said that it has no whole copy."""

    key: bytes
    text: str
    problem: str
    is_lost: bool
