"""The changes of a watch as the messages of ``cortado.v1``: one by one, or packed for clients that take them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from google.protobuf.message import Message

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, watch_pb2
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.keys.keyspace import user_key_of, user_keys_of
from cortado.store.keys.packing import cut_equal, join
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import ScanChunk, logical_of, suffix_from
from cortado.store.mvcc.versions import Item, expiry_of, payload_of
from cortado.store.server.convert import key_message, timestamp_message
from cortado.store.server.document_messages import found_message, is_json, row_batch
from cortado.store.tables.read import transcode
from cortado.store.tables.rows import StoredRow, decode_payload, encode_payload
from cortado.store.tables.runs import Run, split_runs
from cortado.store.tables.view import TableView


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in columns. ``versions`` are their commit timestamps end to end, 12 bytes each; a payload that is None is
    a delete. ``replaced`` holds, by the place of a change, the version that it replaced, as stored; ``expiries`` the
    expiry times of puts."""

    keys: list[LogicalKey] = field(default_factory=list)
    versions: bytes = b""
    payloads: list[bytes | None] = field(default_factory=list)
    replaced: dict[int, Item] = field(default_factory=dict)
    expiries: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of_items(cls, items: Sequence[Item], previous: Sequence[Item | None] = ()) -> Changes:
        """Return the changes of stored items; ``previous`` holds the items that they replaced, if requested."""
        keys = [key for key, _ in items]
        return cls(
            list(map(logical_of, keys)),
            b"".join(map(suffix_from, keys)).translate(INVERTED),
            [payload_of(value) for _, value in items],
            {place: each for place, each in enumerate(previous) if each is not None},
            {place: expires_ms for place, (_, value) in enumerate(items) if (expires_ms := expiry_of(value))},
        )

    @classmethod
    def of_state(cls, chunk: ScanChunk) -> Changes:
        """Return a slice of a state as puts."""
        expiries = chunk.expiries
        of_places = (
            {place: expiries[key] for place, key in enumerate(chunk.keys) if key in expiries} if expiries else {}
        )
        versions = chunk.versions()
        return cls(chunk.keys, versions, list(chunk.payloads), expiries=of_places)

    def part(self, begin: int, end: int) -> Changes:
        """Return a part of the changes of a state."""
        versions = self.versions[begin * TIMESTAMP_BYTES : end * TIMESTAMP_BYTES]
        expiries = {place - begin: each for place, each in self.expiries.items() if begin <= place < end}
        return Changes(self.keys[begin:end], versions, self.payloads[begin:end], expiries=expiries)

    @property
    def deletes(self) -> list[int]:
        """The places of deletes."""
        return [place for place, payload in enumerate(self.payloads) if payload is None]

    def timestamps(self) -> list[Timestamp]:
        return list(map(Timestamp.from_bytes, cut_equal(self.versions, TIMESTAMP_BYTES)))


STATE_BYTES_MAX: Final = 512 << 10
STATE_BYTES_MAX_JSON: Final = 64 << 10
"""The stored bytes of a state in one reply. JSON has many times the size."""


class Replies(Protocol):
    """Makes one watch's replies. ``state_bytes_max`` bounds the part of a state in one reply."""

    state_bytes_max: int

    def reply(
        self, changes: Changes, header: common_pb2.Header, resolved: Timestamp | None, page_token: bytes
    ) -> Message:
        """Return one reply. Raises NotFound if a requested schema is gone."""


class KeyValueReplies:
    """Pairs of one namespace."""

    state_bytes_max = STATE_BYTES_MAX

    def __init__(self, namespace: str, *, packed: bool) -> None:
        self._namespace = namespace
        self._packed = packed

    def reply(
        self, changes: Changes, header: common_pb2.Header, resolved: Timestamp | None, page_token: bytes
    ) -> Message:
        reply = watch_pb2.WatchKeyValueResponse(
            header=header,
            resolved=None if resolved is None else timestamp_message(resolved),
            next_page_token=page_token,
        )
        if not changes.keys:
            return reply
        if self._packed:
            self._pack(changes, reply.packed)
        else:
            reply.changes.extend(self._changes(changes))
        return reply

    def _pack(self, changes: Changes, into: watch_pb2.KvPackedChanges) -> None:
        into.keys, into.key_lengths = join(user_keys_of(self._namespace, changes.keys))
        into.values, into.value_lengths = join([payload or b"" for payload in changes.payloads])
        into.versions = changes.versions
        into.deletes.extend(changes.deletes)
        into.expiring.extend(changes.expiries)
        into.expires_ms.extend(changes.expiries.values())
        if changes.replaced:
            old = list(changes.replaced.values())
            into.replacing.extend(changes.replaced)
            into.replaced.keys, into.replaced.key_lengths = join([user_key_of(logical_of(key)) for key, _ in old])
            into.replaced.values, into.replaced.value_lengths = join([payload_of(value) or b"" for _, value in old])
            into.replaced.versions = _versions(old)

    def _changes(self, changes: Changes) -> list[watch_pb2.KvChange]:
        keys = user_keys_of(self._namespace, changes.keys)
        made: list[watch_pb2.KvChange] = []
        for place, (key, ts, payload) in enumerate(zip(keys, changes.timestamps(), changes.payloads, strict=True)):
            replaced = changes.replaced.get(place)
            made.append(
                watch_pb2.KvChange(
                    kind=_kind(payload),
                    key=key,
                    value=payload or b"",
                    timestamp=timestamp_message(ts),
                    etag="" if payload is None else str(ts),
                    previous=None if replaced is None else _pair(key, replaced),
                    expires_ms=changes.expiries.get(place, 0),
                )
            )
        return made


class TableReplies:
    """Documents of one table. ``view`` returns it under the newest catalog: new schemas may come during the watch."""

    def __init__(self, view: Callable[[], TableView], *, document_format: int, schema_id: int, packed: bool) -> None:
        """Raises InvalidArgument for an unknown format."""
        self._view = view
        self._format = document_format
        self._schema_id = schema_id
        as_json = is_json(document_format)
        self._packed = packed and not as_json
        self.state_bytes_max = STATE_BYTES_MAX_JSON if as_json else STATE_BYTES_MAX

    def reply(
        self, changes: Changes, header: common_pb2.Header, resolved: Timestamp | None, page_token: bytes
    ) -> Message:
        reply = watch_pb2.WatchTableResponse(
            header=header,
            resolved=None if resolved is None else timestamp_message(resolved),
            next_page_token=page_token,
        )
        if not changes.keys:
            return reply
        view = self._view()
        if self._packed:
            self._pack(view, changes, reply.packed)
        else:
            reply.changes.extend(self._changes(view, changes))
        return reply

    def _pack(self, view: TableView, changes: Changes, into: watch_pb2.TablePackedChanges) -> None:
        puts = [payload for payload in changes.payloads if payload is not None]
        into.rows.extend(map(row_batch, self._runs(view, puts)))
        into.versions = changes.versions
        into.deletes.extend(changes.deletes)
        into.deleted.extend(_key(view, changes.keys[place]) for place in changes.deletes)
        into.expiring.extend(changes.expiries)
        into.expires_ms.extend(changes.expiries.values())
        if changes.replaced:
            old = list(changes.replaced.values())
            into.replacing.extend(changes.replaced)
            payloads = [payload_of(value) or b"" for _, value in old]
            into.replaced.extend(map(row_batch, self._runs(view, payloads, _versions(old))))

    def _runs(self, view: TableView, payloads: list[bytes], versions: bytes = b"") -> list[Run]:
        if self._schema_id:
            payloads = [self._transcoded(view, each) for each in payloads]
        return split_runs(payloads, versions)

    def _transcoded(self, view: TableView, payload: bytes) -> bytes:
        row = transcode(view, StoredRow(*decode_payload(payload), ZERO), self._schema_id)
        return encode_payload(row.schema_id, row.body)

    def _changes(self, view: TableView, changes: Changes) -> list[watch_pb2.TableChange]:
        made: list[watch_pb2.TableChange] = []
        for place, (key, ts, payload) in enumerate(
            zip(changes.keys, changes.timestamps(), changes.payloads, strict=True)
        ):
            replaced = changes.replaced.get(place)
            found = None if payload is None else self._found(view, payload, ts)
            made.append(
                watch_pb2.TableChange(
                    kind=_kind(payload),
                    key=_key(view, key),
                    document=None if found is None else found.document,
                    timestamp=timestamp_message(ts),
                    etag="" if found is None else found.etag,
                    previous=None if replaced is None else self._found_item(view, replaced),
                    expires_ms=changes.expiries.get(place, 0),
                )
            )
        return made

    def _found_item(self, view: TableView, item: Item) -> documents_pb2.FoundDocument:
        return self._found(view, payload_of(item[1]) or b"", _ts(item), expiry_of(item[1]))

    def _found(
        self, view: TableView, payload: bytes, ts: Timestamp, expires_ms: int = 0
    ) -> documents_pb2.FoundDocument:
        row = StoredRow(*decode_payload(payload), ts, expires_ms)
        return found_message(view, row, self._format, self._schema_id)


def _kind(payload: bytes | None) -> watch_pb2.ChangeKind:
    return watch_pb2.CHANGE_KIND_DELETE if payload is None else watch_pb2.CHANGE_KIND_PUT


def _key(view: TableView, key: LogicalKey) -> common_pb2.Key:
    return key_message(view.decode_key(view.primary_key_of(key)), view.table.key)


def _pair(key: bytes, item: Item) -> kv_pb2.KvPair:
    value = item[1]
    return kv_pb2.KvPair(key=key, value=payload_of(value), etag=str(_ts(item)), expires_ms=expiry_of(value))


def _ts(item: Item) -> Timestamp:
    return Timestamp.from_bytes(_versions([item]))


def _versions(items: Sequence[Item]) -> bytes:
    return b"".join([suffix_from(key) for key, _ in items]).translate(INVERTED)
