"""What a table, an index and a subject are: the catalogue's values, immutable, versioned by the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cortado.store.keys.decoded import KeyNames
from cortado.store.keys.types import KeyPart

if TYPE_CHECKING:
    from cortado.schema.compatibility import CompatibilityMode


@dataclass(frozen=True, slots=True)
class IndexDescriptor:
    """Indexed ``parts`` in order. Where ``unique``, two rows may not share values unless one of them is null."""

    index_id: int
    name: str
    parts: tuple[KeyPart, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class TableDescriptor:
    """A table. ``subject`` names its value schema's versions; ``version`` grows with each change of the descriptor."""

    table_id: int
    database: str
    name: str
    subject: str
    key: tuple[KeyPart, ...]
    indexes: tuple[IndexDescriptor, ...] = ()
    version: int = 1

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    def index(self, name: str) -> IndexDescriptor | None:
        return next((each for each in self.indexes if each.name == name), None)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One registered schema. ``schema_id`` is unique in the cluster, ``version`` counts from 1 within the subject.

    ``text`` is the declaration as it was registered, ``fingerprint`` the 32 bytes that say which schema it is.
    """

    schema_id: int
    subject: str
    version: int
    text: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class SubjectState:
    """A subject: its compatibility ``mode``, and the schema id of each version, the first version first."""

    subject: str
    mode: CompatibilityMode
    schema_ids: tuple[int, ...] = ()

    @property
    def versions(self) -> tuple[tuple[int, int], ...]:
        """Pairs of version and schema id, oldest first."""
        return tuple(enumerate(self.schema_ids, start=1))


def key_names(tables: Iterable[TableDescriptor]) -> KeyNames:
    """The names that stored keys of these tables are shown with."""
    known = list(tables)
    return KeyNames(
        {table.table_id: table.full_name for table in known},
        {(table.table_id, index.index_id): index.name for table in known for index in table.indexes},
    )
