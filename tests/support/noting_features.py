"""Features that take notes of their calls, alone or registered with replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

from cortado.errors import CortadoError, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import KeyRange, meta_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Reader, logical_of
from cortado.store.mvcc.versions import Item
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.features.feature import Effect, Feature, Features
from cortado.store.replica.features.registration import Registered

ONE, TWO = meta_key("one"), meta_key("two")
AT = [Timestamp(0, wall_ms, 0) for wall_ms in range(10)]


class Noting(Feature):
    """Takes notes of its calls. It keeps the payload of ``kept``."""

    keys_max: ClassVar[int] = 2

    def __init__(self, name: str, kept: LogicalKey, notes: list[str], effect: Effect = Effect.FOLLOWED) -> None:
        self.called, self.kept, self.effect = name, kept, effect
        self.notes = notes
        self.damage: CortadoError | None = None
        self.closed = self.is_new = self.moving = self.unordered = False
        self.unordered_from_here = False
        self.disrupted = 3
        self.followed: tuple[int, int] = 0, 0
        self.late: Timestamp | None = None
        self.ranges: Sequence[KeyRange] = ()

    def note(self, hook: str) -> None:
        self.notes.append(f"{self.called} {hook}")

    @property
    def is_behind(self) -> bool:
        return self.is_new

    @property
    def is_closed(self) -> bool:
        return self.closed

    @property
    def is_unordered(self) -> bool:
        return self.unordered

    @property
    def is_moving(self) -> bool:
        return self.moving

    @property
    def disruptions(self) -> int:
        return self.disrupted

    def refusal(self) -> CortadoError:
        return Unavailable(f"{self.called} is closed")

    @property
    def progress(self) -> str:
        return f"half of {self.called}"

    def load(self, newest: Reader, state: AppliedState) -> None:
        self.note(f"load {state.index}")
        newest.get(self.kept)
        if self.damage is not None:
            raise self.damage

    def unread(self) -> None:
        self.note("unread")

    def repaired(self, _newest: Reader, state: AppliedState) -> None:
        self.note(f"repaired {state.index}")
        if self.damage is not None:
            raise self.damage

    def mended(self, _newest: Reader, state: AppliedState) -> None:
        self.note(f"mended {state.index}")

    def add_to(self, _reader: Reader, _ts: Timestamp, evaluation: Evaluation) -> Evaluation:
        return Evaluation(evaluation.mutations, f"{evaluation.reply} {self.called}")

    def parts(self, keys: Sequence[LogicalKey]) -> bool:
        return self.kept in keys

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        self.note("touches")
        return self.effect if self.kept in keys else Effect.NONE

    def follow(self, committed: Sequence[Changes], uncommitted: Sequence[Changes]) -> None:
        self.is_new = False
        self.followed = len(committed), len(uncommitted)
        self.note(f"follow {len(committed)} {len(uncommitted)}")

    def begin(self) -> None:
        self.note("begin")

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        assert all(logical_of(each)[:1] == b"m" for each, _ in items)
        self.unordered = self.unordered_from_here
        self.note(f"apply {len(items)}")
        return state

    def take_back(self) -> None:
        self.note("take back")

    def settle(self) -> None:
        self.is_new = True
        self.note("settle")

    def late_from(self, _start: bytes, _end: bytes) -> Timestamp | None:
        return self.late

    def broken(self) -> Sequence[KeyRange]:
        return self.ranges


def noting(*effects: Effect) -> tuple[Features, Noting, Noting, list[str]]:
    """Return two features, and their notes."""
    notes: list[str] = []
    first, second = Noting("a", ONE, notes, *effects[:1]), Noting("b", TWO, notes, *effects[1:])
    return Features([first, second]), first, second, notes


def taken(notes: list[str]) -> list[str]:
    found = notes[:]
    notes.clear()
    return found


@contextmanager
def registered(effect: Effect) -> Iterator[list[Noting]]:
    """Register one more feature with every replica that is opened meanwhile."""
    made: list[Noting] = []

    class One(Registered):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            made.append(Noting("more", ONE, [], effect))
            Features.__init__(self, [*self.all, made[-1]])

    with patch("cortado.store.replica.apply.state_machine.Registered", One):
        yield made
