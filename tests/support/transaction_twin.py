"""The duties of a commit, in two pages: a dictionary of documents, one of pairs, and when each last changed.

An operation is a tuple, its kind first; ``DOCUMENTS`` and ``PAIRS`` name the kinds. A *thing* is a unit of change: a
row ``("row", key)``, a pair ``("pair", key)``, or a value of a unique index. Everything is looked at anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from cortado.errors import (
    ConditionFailed,
    CortadoError,
    InvalidArgument,
    NotFound,
    OutOfBounds,
    UniqueViolation,
    WriteConflict,
)
from cortado.store.catalog.declare import IndexDeclaration
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.kv.batches import KvBatch
from cortado.store.kv.operations import KvAdd, KvCheck, KvDelete, KvPut
from cortado.store.mvcc.evaluation import Absent, Condition, EtagIs, Present
from cortado.store.tables.operations import Add, Check, Delete, Put, Update
from cortado.store.transactions.operations import OnPairs, Operation
from support.table_world import DATABASE, TableWorld, index

TABLE: Final = "things"
SCHEMA: Final = {
    "type": "record",
    "name": "Thing",
    "fields": [
        {"name": "owner", "type": "string"},
        {"name": "number", "type": "int"},
        {"name": "code", "type": ["null", "string"], "default": None},
        {"name": "serial", "type": ["null", "long"], "default": None},
        {"name": "count", "type": "int", "default": 0},
        {
            "name": "place",
            "type": [
                "null",
                {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]},
            ],
            "default": None,
        },
    ],
}
INDEXES: Final[Sequence[IndexDeclaration]] = (
    index("code", "code", unique=True),
    index("serial", "serial", unique=True),
    index("count", "count desc"),
    index("city", "place.city", "count"),
)
UNIQUE: Final = ("code", "serial")

Key: TypeAlias = tuple[str, int]
Document: TypeAlias = dict[str, Any]
Thing: TypeAlias = tuple[str, Any]
Asked: TypeAlias = tuple[Any, ...]


def key_of(document: Mapping[str, Any]) -> Key:
    return document["owner"], document["number"]


@dataclass
class State:
    """Rows and pairs, each with the timestamp of its commit; ZERO for the transaction's own writes."""

    rows: dict[Key, tuple[Document, Timestamp]] = field(default_factory=dict)
    pairs: dict[bytes, tuple[bytes, Timestamp]] = field(default_factory=dict)
    changed: dict[Thing, Timestamp] = field(default_factory=dict)
    """When a thing last changed: deletes, too."""

    def holders(self, of: str) -> dict[Any, list[Key]]:
        """Return the rows that hold each value of a unique index."""
        found: dict[Any, list[Key]] = {}
        for key, (document, _) in self.rows.items():
            if document[of] is not None:
                found.setdefault(document[of], []).append(key)
        return found


@dataclass(frozen=True)
class Refused:
    """The class of the refusal, and the operation that it is of; None if that is not said."""

    error: type[CortadoError]
    row: int | None = None


class Interpreter:
    """One commit over a state."""

    def __init__(self, state: State, start: Timestamp | None) -> None:
        self.before = state
        self.after = replace(state, rows=deepcopy(state.rows), pairs=dict(state.pairs))
        self.start = start
        self.written: dict[Thing, int] = {}
        self.touched: dict[Key, int] = {}
        """Rows that may have changed, by the place of the last operation on each."""
        self.sums: list[int] = []

    def is_newer(self, *things: Thing) -> bool:
        """Return whether one of them changed after the transaction began."""
        return self.start is not None and any(self.before.changed.get(each, ZERO) > self.start for each in things)

    def run(self, operations: Sequence[Asked]) -> Refused | None:
        row = 0
        for asked in operations:
            for each in asked[1] if asked[0] == "batch of pairs" else [asked]:
                refused = self._one(each, row)
                if refused is not None:
                    return refused
                row += 1
        for thing, place in self.written.items():
            if self.is_newer(thing):
                # If there are several, no rule says which one is named.
                return Refused(WriteConflict, place if len(self.written) == 1 else None)
        return self._unique()

    def _one(self, asked: Asked, row: int) -> Refused | None:
        kind, what, *more = asked
        on_rows = kind in ("put", "update", "delete", "add", "check")
        key = key_of(what) if kind == "put" else what
        thing: Thing = ("row" if on_rows else "pair", key)
        try:
            (self._on_row if on_rows else self._on_pair)(kind, what, *more)
        except CortadoError as error:
            if self.is_newer(thing):
                return Refused(WriteConflict, row)
            return Refused(type(error), row if isinstance(error, ConditionFailed) else None)
        if not kind.endswith(("add", "check")):
            self.written[thing] = row
        if on_rows and kind != "check":
            self.touched[key] = row
        return None

    def _on_row(self, kind: str, what: Any, *more: Any) -> None:
        rows = self.after.rows
        key = key_of(what) if kind == "put" else what
        held = rows.get(key)
        if kind != "add":
            _check(more[-1], held)
        if kind == "put":
            rows[key] = dict(what), ZERO
        elif kind == "delete":
            rows.pop(key, None)
        elif kind != "check":
            if held is None:
                raise NotFound("document", str(key))
            document = deepcopy(held[0])
            if kind == "update":
                _change(document, more[0])
            else:
                name, delta, *bounds = more
                if document[name] is None:
                    raise InvalidArgument(name, "is null")
                document[name] = self._sum(document[name], delta, bounds)
            rows[key] = document, ZERO

    def _on_pair(self, kind: str, key: bytes, *more: Any) -> None:
        pairs = self.after.pairs
        held = pairs.get(key)
        if kind != "pair add":
            _check(more[-1], held)
        if kind == "pair put":
            pairs[key] = more[0], ZERO
        elif kind == "pair delete":
            pairs.pop(key, None)
        elif kind == "pair add":
            value = bytes(8) if held is None else held[0]
            if len(value) != 8:
                raise InvalidArgument("key", "is no counter")
            delta, *bounds = more
            pairs[key] = self._sum(int.from_bytes(value, signed=True), delta, bounds).to_bytes(8, signed=True), ZERO

    def _sum(self, value: int, delta: int, bounds: Sequence[int | None]) -> int:
        low, high = bounds
        total = value + delta
        if (low is not None and total < low) or (high is not None and total > high):
            raise OutOfBounds("", "", "")
        self.sums.append(total)
        return total

    def _unique(self) -> Refused | None:
        problems = []
        for of in UNIQUE:
            for value, keys in self.after.holders(of).items():
                if len(keys) > 1:
                    # It rests on the changed rows, and on the holder of the value.
                    changed = [("row", key) for key in keys if key in self.touched]
                    stands = [(of, value)] if len(changed) < len(keys) else []
                    problems.append(WriteConflict if self.is_newer(*changed, *stands) else UniqueViolation)
        if not problems:
            return None
        return Refused(problems[0] if len(set(problems)) == 1 else Conflicting)

    def commit(self, ts: Timestamp) -> State:
        """Return the state after the commit, if nothing was refused."""
        before, after = self.before, self.after
        changed = dict(before.changed)
        for name, old, new in (("row", before.rows, after.rows), ("pair", before.pairs, after.pairs)):
            for key, held in list(new.items()):  # type: ignore[attr-defined]
                if held[1] == ZERO:
                    new[key] = held[0], ts  # type: ignore[index]
                    changed[name, key] = ts
            changed.update(dict.fromkeys(((name, key) for key in old if key not in new), ts))  # type: ignore[attr-defined]
        for of in UNIQUE:
            old_holders, new_holders = before.holders(of), after.holders(of)
            for value in {*old_holders, *new_holders}:
                if old_holders.get(value) != new_holders.get(value):
                    changed[of, value] = ts
        return State(after.rows, after.pairs, changed)


class Conflicting(CortadoError):
    """Two values collide, and the transaction could see one of them: either may be named."""


def _check(condition: Condition | None, held: tuple[Any, Timestamp] | None) -> None:
    holds = True
    match condition:
        case Absent():
            holds = held is None
        case Present():
            holds = held is not None
        case EtagIs(etag):
            holds = held is not None and held[1] == etag
    if not holds:
        raise ConditionFailed("", "", "")


def _change(document: Document, changes: Mapping[str, Any]) -> None:
    for path, value in changes.items():
        if path == "place.city":
            if document["place"] is None:
                raise InvalidArgument(path, "place is null")
            document["place"] = {"city": value}
        else:
            document[path] = value


def with_etags(asked: list[Asked], state: State) -> list[Asked]:
    """Put the etags of ``state``, which the transaction has seen, into the conditions on etags."""
    return [_with_etag(each, state) for each in asked]


def _with_etag(asked: Asked, state: State) -> Asked:
    if asked[0] == "batch of pairs" or asked[-1] != "etag":
        return asked
    key = key_of(asked[1]) if asked[0] == "put" else asked[1]
    held = state.pairs.get(key) if asked[0].startswith("pair") else state.rows.get(key)
    return (*asked[:-1], None if held is None else EtagIs(held[1]))


# --- the same operations for the product ---------------------------------------------------------------------------

NAMESPACE: Final = "n"


def to_operation(world: TableWorld, asked: Asked) -> Operation:
    kind, what, *more = asked
    make: Mapping[str, Callable[[], Operation]] = {
        "put": lambda: Put(DATABASE, TABLE, world.avro(TABLE, what), condition=more[0]),
        "update": lambda: Update(DATABASE, TABLE, what, more[0], more[1]),
        "delete": lambda: Delete(DATABASE, TABLE, what, more[0]),
        "add": lambda: Add(DATABASE, TABLE, what, *more),
        "check": lambda: Check(DATABASE, TABLE, what, more[0]),
        "pair put": lambda: OnPairs(NAMESPACE, KvPut(what, more[0], more[1])),
        "pair delete": lambda: OnPairs(NAMESPACE, KvDelete(what, more[0])),
        "pair add": lambda: OnPairs(NAMESPACE, KvAdd(what, *more)),
        "pair check": lambda: OnPairs(NAMESPACE, KvCheck(what, more[0])),
        "batch of pairs": lambda: OnPairs(NAMESPACE, _packed(what)),
    }
    return make[kind]()


def _packed(operations: Sequence[Asked]) -> KvBatch:
    values = [each[2] if each[0] == "pair put" else b"" for each in operations]
    deletes = [place for place, each in enumerate(operations) if each[0] == "pair delete"]
    return KvBatch([each[1] for each in operations], values, frozenset(deletes))


def new_world(store: Any) -> TableWorld:
    world = TableWorld(store)
    world.create(TABLE, SCHEMA, ["owner", "number desc"], INDEXES)
    return world
