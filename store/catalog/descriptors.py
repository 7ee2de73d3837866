"""Databases, tables, indexes, schemas and subjects: the catalogue's values, immutable.

A thing that has a number has it for ever: a number comes from a counter beside the numbered thing, and no counter goes
back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from cortado.errors import IndexNotReady
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.decoded import KeyNames
from cortado.store.keys.types import KeyPart

if TYPE_CHECKING:
    from cortado.schema.compatibility import CompatibilityMode
    from cortado.store.keys.keyspace import KeyRange


@dataclass(frozen=True, slots=True)
class DatabaseDescriptor:
    """A database. ``number`` is the upper half of its tables' ids, ``next_table_number`` the next one's lower half. It
    counts for the ``principal`` that made it, empty if roles were off."""

    name: str
    number: int
    next_table_number: int = 1
    principal: str = ""


class IndexState(StrEnum):
    """The state of an index::

    BUILDING ──the last row has its entry──► READY
       └──two rows share a unique value──► FAILED ──► dropped
    """

    BUILDING = "building"
    """Every write maintains it, and a job adds the entries of rows that were there before. Nothing reads it."""
    READY = "ready"
    """It holds an entry for every row."""
    FAILED = "failed"
    """It could not be built. Nothing maintains or reads it; its entries go when it is dropped."""


@dataclass(frozen=True, slots=True)
class IndexDescriptor:
    """Indexed ``parts`` in order. If ``unique``, two rows may not share values unless one of them is null.

    It is read at times from ``ready_ts`` on, in the ``state`` READY. If it was made with its table, that is always.
    ``job_id`` is the job that builds it, or did; ``failure`` why it could not be built, ``failed_keys`` the rows.
    """

    index_id: int
    name: str
    parts: tuple[KeyPart, ...]
    unique: bool = False
    state: IndexState = IndexState.READY
    ready_ts: Timestamp = ZERO
    job_id: int = 0
    failure: str = ""
    failed_keys: tuple[str, ...] = ()

    def is_ready_at(self, read_ts: Timestamp) -> bool:
        """Return whether a read at that time may go through it."""
        return self.state is IndexState.READY and self.ready_ts <= read_ts

    def check_ready(self, table: str, read_ts: Timestamp) -> None:
        """Raises IndexNotReady."""
        if self.is_ready_at(read_ts):
            return
        ready_ts = ""
        match self.state:
            case IndexState.BUILDING:
                problem = "is being built, and cannot be read yet"
            case IndexState.FAILED:
                problem = f"could not be built, and must be dropped: {self.failure}"
            case IndexState.READY:
                ready_ts = str(self.ready_ts)
                problem = f"can be read at {ready_ts} and later, not at {read_ts}"
        raise IndexNotReady(f"{self.name} of table {table}", problem, ready_ts)


@dataclass(frozen=True, slots=True)
class TableDescriptor:
    """A table. ``subject`` names its value schema's versions; ``version`` grows with each change of the descriptor.

    ``retention_ms`` is how long old versions are kept: 0 as long as the cluster keeps them, KEEP_ALL for ever.
    Documents expire ``ttl_ms`` after their commit, 0 never, unless a write says otherwise. ``next_index_id`` is above
    the id of every index that the table ever had. At ``named_ts`` its name came to mean this table: it was made, or
    came back, or had another name before. A client is not told ``next_index_id``: 0. It counts for the ``principal``
    that made it, empty if roles were off; a client is not told that either.
    """

    table_id: int
    database: str
    name: str
    subject: str
    key: tuple[KeyPart, ...]
    indexes: tuple[IndexDescriptor, ...] = ()
    version: int = 1
    next_index_id: int = 0
    retention_ms: int = 0
    named_ts: Timestamp = ZERO
    ttl_ms: int = 0
    principal: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    def index(self, name: str) -> IndexDescriptor | None:
        return next((each for each in self.indexes if each.name == name), None)

    @property
    def maintained(self) -> tuple[IndexDescriptor, ...]:
        """The indexes that every write keeps right: those that are READY, and those that are being built."""
        return tuple(each for each in self.indexes if each.state is not IndexState.FAILED)

    def with_builds_ready(self, ready_ts: Timestamp) -> TableDescriptor:
        """Return a table without rows with its builds complete: no row is left to index. The job has lost its table,
        and ends."""
        return self._with_builds(lambda index: replace(index, state=IndexState.READY, ready_ts=ready_ts))

    def with_builds_failed(self, failure: str) -> TableDescriptor:
        """Return the table with its builds failed: they have no job any more."""
        return self._with_builds(lambda index: replace(index, state=IndexState.FAILED, failure=failure))

    def _with_builds(self, end: Callable[[IndexDescriptor], IndexDescriptor]) -> TableDescriptor:
        ended = (end(each) if each.state is IndexState.BUILDING else each for each in self.indexes)
        return replace(self, indexes=tuple(ended))

    def with_index(self, index: IndexDescriptor) -> TableDescriptor:
        """With ``index`` in the place of the one that has its id, and the next version."""
        indexes = tuple(index if each.index_id == index.index_id else each for each in self.indexes)
        return replace(self, indexes=indexes, version=self.version + 1)


class DropKind(StrEnum):
    """The kind of thing that was dropped."""

    TABLE = "table"
    TRUNCATED = "truncated"
    INDEX = "index"
    DATABASE = "database"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Drop:
    """The thing to be dropped. ``name`` is for people; ``ranges`` are to be cleared when the grace is over, which lasts
    for the table's ``retention_ms``; ``descriptor`` is the stored value that can be put back, empty if there is no such
    value."""

    kind: DropKind
    name: str
    table_id: int = 0
    retention_ms: int = 0
    ranges: tuple[KeyRange, ...] = ()
    descriptor: bytes = b""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A thing dropped at ``dropped_ts``, under a ``number`` of its own.

    ``dropped_with`` is the number of the database that it went with, or 0. Once it ``is_clearing``, its grace is over.
    It counts for the ``principal`` that dropped it, empty if roles were off.
    """

    number: int
    what: Drop
    dropped_ts: Timestamp
    dropped_with: int = 0
    is_clearing: bool = False
    principal: str = ""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema, whichever subjects have it. ``schema_id`` names the text in the whole cluster, for ever.

    ``text`` is the declaration as it was first registered; by ``fingerprint``, 32 bytes, it reads and writes as others.
    """

    schema_id: int
    text: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject, counted from 1 in it. A softly ``deleted`` one is in no list, and may be forgotten."""

    version: int
    schema_id: int
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a subject with its schema."""

    subject: str
    version: int
    schema: RegisteredSchema


@dataclass(frozen=True, slots=True)
class SubjectState:
    """A subject: its own compatibility ``mode`` if it has one, and its versions, oldest first.

    ``next_version`` is above every version that the subject ever had. A subject with a mode may have no version yet. It
    counts for the ``principal`` that made it, empty if roles were off.
    """

    subject: str
    mode: CompatibilityMode | None = None
    versions: tuple[SubjectVersion, ...] = ()
    next_version: int = 1
    principal: str = ""

    @property
    def live(self) -> tuple[SubjectVersion, ...]:
        """The versions that are not deleted: the ones that are read, listed and compared with."""
        return tuple(each for each in self.versions if not each.deleted)

    @property
    def newest(self) -> SubjectVersion | None:
        """The last of those; None if there are none."""
        return next((each for each in reversed(self.versions) if not each.deleted), None)

    def with_version(self, schema_id: int) -> SubjectState:
        """With one more version."""
        added = SubjectVersion(self.next_version, schema_id)
        return replace(self, versions=(*self.versions, added), next_version=self.next_version + 1)


def key_names(tables: Iterable[TableDescriptor]) -> KeyNames:
    """Return the names that stored keys of these tables are shown with."""
    known = list(tables)
    return KeyNames(
        {table.table_id: table.full_name for table in known},
        {(table.table_id, index.index_id): index.name for table in known for index in table.indexes},
    )
