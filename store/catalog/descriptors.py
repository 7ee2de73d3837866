"""What a database, a table and an index are: the catalogue's values, immutable, versioned by the table."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.store.keys.types import KeyPart


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
