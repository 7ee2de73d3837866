"""The known damage of one replica, a case each, as values."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from cortado.store.mvcc.damage import Damage


@dataclass(slots=True)
class Case:
    """One damage that is known. ``problem`` says why it is not repaired yet; it ``is_lost`` if every other member has
    answered and has no whole copy of ``keys``, the keys that are damaged here; ``right_keys`` are known to be as they
    were written. It ``is_known`` if nothing else of the range is in doubt. ``wanted`` are versions that another member
    has and that are not here, though no checksum says so."""

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
    """Why a range is not whole yet, and whether all other members have said that they have no whole copy.
    ``right_keys`` are as they were written, by some replica's checksum of a key. If all damaged keys are right, it
    ``is_known`` that nothing else is in doubt, unless an item stands out of its place: searches go wrong beside it."""

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
    """A stored ``key`` with an item that is not as it was written (empty if unknown), its text for people, and why it
    is not repaired yet; it ``is_lost`` if every other member has said that it has no whole copy."""

    key: bytes
    text: str
    problem: str
    is_lost: bool


def no_copy(peers: int) -> str:
    return "no other member has a whole copy" if peers else "there is no other member that could have a copy"
