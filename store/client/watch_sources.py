"""Sources of watches: ranges of pairs, and ranges of documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, watch_pb2
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.documents import AsyncDocumentCodec, Document, RowBatch, decoder_of
from cortado.store.client.stubs import Stubs
from cortado.store.client.values import Key, KeyLike, key_from_proto, range_to_proto
from cortado.store.client.watch import Change, Changed, Deleted
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.packing import cut, cut_equal
from cortado.store.keys.types import KeyPart, KeyType

PairChange: TypeAlias = Change[bytes, bytes]
DocumentChange: TypeAlias = Change[Key, Document[Any]]


class PairSource:
    """A range of user keys."""

    method = Stubs.watch.KeyValue

    def __init__(self, namespace: str, within: kv_pb2.KvRange) -> None:
        self._namespace = namespace
        self._within = within

    async def request(self, options: watch_pb2.WatchOptions) -> watch_pb2.WatchKeyValueRequest:
        return watch_pb2.WatchKeyValueRequest(
            namespace=self._namespace, range=self._within, options=options, packed=True
        )

    async def changes(self, reply: watch_pb2.WatchKeyValueResponse) -> Sequence[PairChange]:
        packed = reply.packed
        deletes = set(packed.deletes)
        old = packed.replaced
        previous = dict(zip(packed.replacing, cut(old.values, old.value_lengths), strict=True))
        expiries = dict(zip(packed.expiring, packed.expires_ms, strict=True))
        found = zip(
            cut(packed.keys, packed.key_lengths),
            cut(packed.values, packed.value_lengths),
            _timestamps(packed.versions),
            strict=True,
        )
        return [
            Deleted(key, ts, previous.get(place))
            if place in deletes
            else Changed(key, value, ts, previous.get(place), expiries.get(place, 0))
            for place, (key, value, ts) in enumerate(found)
        ]


class DocumentSource:
    """A range of a table's primary key."""

    method = Stubs.watch.Table

    def __init__(
        self,
        table: documents_pb2.TableName,
        bounds: tuple[KeyLike, KeyLike, KeyLike],
        described: Callable[[], Awaitable[TableDescriptor]],
        codec: AsyncDocumentCodec,
    ) -> None:
        """``bounds`` are start, end and prefix; ``described`` gives the table that the watch began with."""
        self._table = table
        self._bounds = bounds
        self._described = described
        self._codec = codec

    async def request(self, options: watch_pb2.WatchOptions) -> watch_pb2.WatchTableRequest:
        return watch_pb2.WatchTableRequest(
            table=self._table,
            range=range_to_proto(*self._bounds, await self._codec._timed((await self._described()).key)),
            options=options,
            packed=True,
        )

    async def changes(self, reply: watch_pb2.WatchTableResponse) -> Sequence[DocumentChange]:
        packed = reply.packed
        versions = _timestamps(packed.versions)
        if not versions:
            return []
        parts = (await self._described()).key
        deleted = dict(zip(packed.deletes, map(key_from_proto, packed.deleted), strict=True))
        put_at = [str(ts) for place, ts in enumerate(versions) if place not in deleted]
        documents = iter(await self._documents(packed.rows, put_at))
        old = [document for _, document in await self._documents(packed.replaced)]
        previous = dict(zip(packed.replacing, old, strict=True))
        expiries = dict(zip(packed.expiring, packed.expires_ms, strict=True))
        changes: list[DocumentChange] = []
        for place, ts in enumerate(versions):
            if place in deleted:
                changes.append(Deleted(deleted[place], ts, previous.get(place)))
            else:
                value, document = next(documents)
                expires_ms = expiries.get(place, 0)
                changes.append(Changed(key_of(value, parts), document, ts, previous.get(place), expires_ms))
        return changes

    async def _documents(
        self, rows: Sequence[common_pb2.RowBatch], etags: Sequence[str] = ()
    ) -> list[tuple[dict[str, Any], Document[Any]]]:
        """Return the documents of runs of rows, each with its values as a dict; their etags, unless the runs have
        versions."""
        documents: list[tuple[dict[str, Any], Document[Any]]] = []
        for run in rows:
            writer, reader = await self._codec.reader_of(run.schema_id)
            decode, shape = decoder_of(writer, reader), reader or writer
            batch = RowBatch(run.schema_id, run.bodies, run.lengths, run.versions, shape)
            named: Iterator[str] = batch.etags() if run.versions else iter(etags[len(documents) :])
            # The names may go on behind this run's rows.
            instance_of = self._codec._instances(shape)
            values = map(decode, batch.each_body())
            documents += [(value, Document(instance_of(value), next(named), shape, writer)) for value in values]
        return documents


def key_of(document: dict[str, Any], parts: Sequence[KeyPart]) -> Key:
    """Return the primary key in a document, with its values in the form of all keys given out."""
    return tuple(_part(_at(document, part.path), part) for part in parts)


def _at(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document[name]
    return document


def _part(value: Any, part: KeyPart) -> Any:
    if part.type is KeyType.TIMESTAMP and isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return float(value) if part.type is KeyType.FLOAT64 else value


def _timestamps(versions: bytes) -> list[Timestamp]:
    return timestamps_of(cut_equal(versions, TIMESTAMP_BYTES))


def timestamps_of(encoded: Sequence[bytes]) -> list[Timestamp]:
    """Decode timestamps of 12 bytes each."""
    # All changes of one commit share a timestamp.
    decoded = {each: Timestamp.from_bytes(each) for each in set(encoded)}
    return list(map(decoded.__getitem__, encoded))
