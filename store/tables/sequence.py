"""The rows of a chunk one after another: the definition of a bulk write.

Each row sees the rows before it: a key that came before is there, a unique value that an earlier row took is taken, and
one that an earlier row gave up is free. It is the slow way (``bulk.py`` takes it only if the order matters), and a
property test holds the fast way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal, TypeAlias

from cortado.errors import ConditionFailed, UniqueViolation, WriteConflict
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import decode_parts
from cortado.store.keys.keyspace import INDEX_PREFIX_BYTES, primary_key_of
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.tables.building import CannotBuild, is_building
from cortado.store.tables.chunk import PreparedChunk, RowErrors
from cortado.store.tables.indexes import IndexEntry
from cortado.store.tables.operations import BulkMode
from cortado.store.tables.rows import show_values

EntryKeys: TypeAlias = list[LogicalKey | None]


class Verdict(Enum):
    """The outcome of a row that is not refused."""

    WRITE = auto()
    UNCHANGED = auto()


@dataclass(frozen=True, slots=True)
class RowRules:
    """The conditions of a row, uniqueness aside: the mode, and ``unchanged_since`` (see ``bulk.py``). Also the expiry
    of all written rows, 0 for never, if rows do not keep theirs."""

    prepared: PreparedChunk
    mode: BulkMode
    unchanged_since: Timestamp | None
    commit_ts: Timestamp
    expires_ms: int

    @property
    def accept_all(self) -> bool:
        return self.mode is BulkMode.UPSERT and self.unchanged_since is None

    @property
    def accept_absent(self) -> bool:
        """Return whether every row without a live version is written."""
        return self.mode is not BulkMode.REPLACE

    @property
    def accept_present(self) -> bool:
        """Return whether every row with a live version is written."""
        return self.mode is not BulkMode.INSERT and self.unchanged_since is None

    def expires_of(self, row: int) -> int:
        kept = self.prepared.expiries
        return self.expires_ms if kept is None else kept[row]

    def judge(
        self, row: int, live: Version | None
    ) -> Literal[Verdict.WRITE, Verdict.UNCHANGED] | ConditionFailed | WriteConflict:
        """Return the outcome of a row, with ``live`` the live version of its key."""
        since = self.unchanged_since
        if since is not None and live is not None and live.ts > since:
            if live.payload == self.prepared.payloads[row]:
                return Verdict.UNCHANGED
            return WriteConflict(self._key(row), str(since), str(live.ts), row=self.prepared.places[row])
        if self.mode is BulkMode.INSERT and live is not None:
            return ConditionFailed(self._key(row), "absent", str(live.ts), row=self.prepared.places[row])
        if self.mode is BulkMode.REPLACE and live is None:
            return ConditionFailed(self._key(row), "present", "absent", row=self.prepared.places[row])
        return Verdict.WRITE

    def _key(self, row: int) -> str:
        return self.prepared.view.show_key(primary_key_of(self.prepared.row_keys[row]))


def write_in_sequence(
    reader: Reader,
    prepared: PreparedChunk,
    live: Sequence[Version | None],
    old: Sequence[EntryKeys],
    rules: RowRules,
    errors: RowErrors,
) -> Mutations:
    """Return the mutations; ``errors`` takes the errors of rows, by their places in the request. Raises CannotBuild."""
    chunk = _Sequence(reader, prepared, live, old, rules)
    for row in range(len(prepared)):
        error = chunk.write(row)
        if error is not None:
            errors[prepared.places[row]] = error
    return chunk.mutations()


class _Sequence:
    """The state of the chunk's keys after the rows that were written so far."""

    def __init__(
        self,
        reader: Reader,
        prepared: PreparedChunk,
        live: Sequence[Version | None],
        old: Sequence[EntryKeys],
        rules: RowRules,
    ) -> None:
        self._prepared = prepared
        self._rules = rules
        # By row key: its live version, and the keys of its entries.
        self._rows: dict[LogicalKey, tuple[Version | None, list[LogicalKey]]] = {}
        # By entry: its payload and its expiry.
        self._stored_entries: dict[LogicalKey, tuple[bytes, int]] = {}
        for row, row_key in enumerate(prepared.row_keys):
            primary_key = primary_key_of(row_key)
            entries = {
                key: primary_key if new.index.unique else b""
                for new, keys in zip(prepared.entries, old, strict=False)
                if (key := keys[row]) is not None
            }
            version = live[row]
            self._rows[row_key] = (version, list(entries))
            if version is not None:
                stored = {key: (payload, version.expires_ms) for key, payload in entries.items()}
                self._stored_entries.update(stored)
        wanted = {new.keys[row] for new in prepared.entries for row in range(len(prepared)) if new.exclusive[row]}
        asked = list(wanted)
        # By entry: the primary key of the row that holds it, None if it is free.
        self._holders = {
            key: None if holder is None else holder.payload
            for key, holder in zip(asked, reader.get_many(asked) if asked else (), strict=True)
        }
        # Payloads to be stored, and their expiries.
        self._written: dict[LogicalKey, tuple[bytes, int]] = {}
        self._entries: dict[LogicalKey, tuple[bytes, int] | None] = {}

    def write(self, row: int) -> ConditionFailed | WriteConflict | UniqueViolation | None:
        """Write one row, or say why not. Raises CannotBuild."""
        prepared = self._prepared
        row_key = prepared.row_keys[row]
        live, before = self._rows[row_key]
        verdict = self._rules.judge(row, live)
        if verdict is Verdict.UNCHANGED:
            return None
        if verdict is not Verdict.WRITE:
            return verdict
        primary_key = primary_key_of(row_key)
        after = [new.entry(row, primary_key) for new in prepared.entries]
        for entry in after:
            holder = self._holders.get(entry.key) if entry.exclusive else None
            if holder is not None and holder != primary_key:
                violation = self._violation(row, entry, holder)
                if is_building(entry.index):
                    rows = [violation.key, violation.existing_key]
                    raise CannotBuild(self._prepared.view, entry.index, violation.message(), rows)
                return violation
        expires_ms = self._rules.expires_of(row)
        self._move(before, after, expires_ms)
        self._written[row_key] = prepared.payloads[row], expires_ms
        version = Version(self._rules.commit_ts, prepared.payloads[row], expires_ms)
        self._rows[row_key] = version, [entry.key for entry in after]
        return None

    def mutations(self) -> Mutations:
        mutations = Mutations()
        for key, document in self._written.items():
            mutations.put(key, *document)
        for key, entry in self._entries.items():
            stored = self._stored_entries.get(key)
            # An entry that came and went within the chunk was never stored, one that went and came back still is.
            if entry is None and stored is not None:
                mutations.delete(key)
            elif entry is not None and stored != entry:
                mutations.put(key, *entry)
        return mutations

    def _move(self, before: Sequence[LogicalKey], after: Sequence[IndexEntry], expires_ms: int) -> None:
        for key in before:
            self._entries[key] = None
            if key in self._holders:
                self._holders[key] = None
        for entry in after:
            self._entries[entry.key] = entry.payload, expires_ms
            if entry.exclusive:
                self._holders[entry.key] = entry.payload

    def _violation(self, row: int, entry: IndexEntry, holder: bytes) -> UniqueViolation:
        view, parts = self._prepared.view, entry.index.parts
        return UniqueViolation(
            index=entry.index.name,
            values=show_values(decode_parts(entry.key[INDEX_PREFIX_BYTES:], parts), parts),
            key=view.show_key(primary_key_of(self._prepared.row_keys[row])),
            existing_key=view.show_key(holder),
            row=self._prepared.places[row],
        )
