"""Operations on documents and their replies: plain values, whatever carried them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import KeyValue
from cortado.store.mvcc.evaluation import Condition
from cortado.store.mvcc.expiry import Expiry
from cortado.store.tables.rows import StoredRow


class PutMode(StrEnum):
    """The condition of a put on the row before: any, no row, or a row."""

    UPSERT = "upsert"
    INSERT = "insert"
    REPLACE = "replace"


class BulkMode(StrEnum):
    """The effect of a bulk load's rows; those of an update have some fields alone, those of a delete the key's."""

    UPSERT = "upsert"
    INSERT = "insert"
    REPLACE = "replace"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class AvroDocument:
    """An Avro ``body`` written with the schema of that id. Hostile until checked."""

    schema_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A JSON object in the schema of that id; 0 for the subject's newest version."""

    text: str
    schema_id: int = 0


DocumentInput: TypeAlias = AvroDocument | JsonDocument


@dataclass(frozen=True, slots=True)
class Put:
    """Write a whole document under the key that it holds. If ``expiry`` is None, it expires as the table says."""

    database: str
    table: str
    document: DocumentInput
    mode: PutMode = PutMode.UPSERT
    condition: Condition | None = None
    expiry: Expiry | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Change the fields at these paths (``a`` or ``a.b``) of the document of ``key``, and no others.

    Values are Python values as in documents or, if ``json`` is set, JSON values. If ``expiry`` is None, it keeps its
    expiry; then there must be changes.
    """

    database: str
    table: str
    key: Sequence[KeyValue]
    changes: Mapping[str, Any]
    condition: Condition | None = None
    json: bool = False
    expiry: Expiry | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the document of ``key``, if there is one."""

    database: str
    table: str
    key: Sequence[KeyValue]
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """Add ``delta`` to the whole number at the path ``field`` of the document of ``key``; the sum stays within [min,
    max], and the document expires when it did before."""

    database: str
    table: str
    key: Sequence[KeyValue]
    field: str
    delta: int
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing; ``condition`` must hold of the document of ``key``."""

    database: str
    table: str
    key: Sequence[KeyValue]
    condition: Condition


Operation: TypeAlias = Put | Update | Delete | Add | Check


@dataclass(frozen=True, slots=True)
class Written:
    """Done at ``ts``, which is also the etag of every document that was written."""

    ts: Timestamp

    @property
    def etag(self) -> str:
        return str(self.ts)


@dataclass(frozen=True, slots=True)
class Updated:
    """The document as it is after an update, in the subject's newest version."""

    row: StoredRow


@dataclass(frozen=True, slots=True)
class Deleted:
    """Whether there was a document to delete; at ``ts`` there is none."""

    ts: Timestamp
    existed: bool


@dataclass(frozen=True, slots=True)
class AvroRows:
    """Avro bodies of one schema end to end; ``lengths`` are little-endian unsigned integers of 4 bytes, one a row."""

    schema_id: int
    bodies: bytes
    lengths: bytes


@dataclass(frozen=True, slots=True)
class JsonRows:
    """JSON objects in the subject's newest version."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class BulkChunk:
    """Many documents for one table, each written or refused by itself, all that are written in one commit.

    The outcome is that of writing them one after another. If ``expiry`` is None, they expire as the table says.
    :mod:`cortado.store.tables.bulk` defines ``unchanged_since``.
    """

    database: str
    table: str
    rows: AvroRows | JsonRows
    mode: BulkMode = BulkMode.UPSERT
    unchanged_since: Timestamp | None = None
    expiry: Expiry | None = None
    columns: tuple[str, ...] = ()
    """The fields that rows have, if those are not all."""


@dataclass(frozen=True, slots=True)
class BulkWritten:
    """The result of one chunk: how many rows are now stored as given, and why each other one is not, by its place from
    0."""

    ts: Timestamp
    written: int
    errors: tuple[tuple[int, CortadoError], ...] = ()
