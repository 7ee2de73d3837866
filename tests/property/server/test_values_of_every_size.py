"""Every accepted value can be read: over the wire, at any size, in every form, on both engines.

Values go from nothing to 1 MiB and keys to their longest, in runs that were once too much for a reply: small pairs
before large ones, hundreds of 60 KB, and rows that are small as they are stored and large as they are read.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import grpc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2, watch_pb2, watch_pb2_grpc
from cortado.schema.documents import decode_document
from cortado.schema.parse import parse_schema
from cortado.store.client import Client
from cortado.store.engine.interface import Engine
from cortado.store.keys.packing import cut
from support.engines import open_lmdb
from support.examples import examples
from support.memory_engine import MemoryEngine
from support.served_node import served_node
from support.wire import Wire, table_name

pytestmark = pytest.mark.process

MIB = 1 << 20
NAMESPACE, TABLE = "n", "db.docs"
# The bytes that a string may have in the key of a row, and with it in one of an index.
KEY_BYTES = 470
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "tag", "type": "string"},
    {"name": "body", "type": "bytes"},
]
# A reader's default: 600 rows of some bytes become 12 MB.
PAD: dict[str, Any] = {"name": "pad", "type": "string", "default": "p" * 20_000}
LARGEST = MIB - 1_000

Row = tuple[str, str, int]
"""The id, the tag and the size of the body; its bytes follow from it."""


@dataclass
class Stored:
    """The values that a node was given, and stubs to ask it by."""

    wire: Wire
    schema_ids: list[int]
    pairs: list[tuple[bytes, int]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def __repr__(self) -> str:
        return "what was stored"

    @property
    def watch(self) -> Any:
        return watch_pb2_grpc.WatchStub(self.wire.channel)  # type: ignore[no-untyped-call]


def body(size: int) -> bytes:
    return size.to_bytes(4) * (size // 4) + b"x" * (size % 4)


def sizes() -> list[int]:
    """Return runs of one size, small ones before large ones, and everything mixed."""
    drawn = random.Random(9)
    mixed = [drawn.choice([0, 0, 1, 100, 5_000, 60_000, 300_000, LARGEST]) for _ in range(40)]
    return [*[10] * 16, *[LARGEST] * 12, *[60_000] * 200, *[100] * 600, *mixed]


def fill(wire: Wire) -> Stored:
    drawn = random.Random(5)
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
    stored = Stored(wire, [wire.register(TABLE, *FIELDS)])
    by_tag = tables_pb2.Index(name="by_tag", parts=[tables_pb2.KeyPart(path="tag")])
    wire.create_table("db", "docs", ["id"], by_tag)
    for number, size in enumerate(sizes()):
        key = f"{number:05}" + "k" * drawn.choice([0, 3, KEY_BYTES - 5])
        stored.pairs.append((key.encode(), size))
        stored.rows.append((key, f"t{number % 3}", size))
    with Client(wire.endpoint) as client:
        documents = ({"id": key, "tag": tag, "body": body(size)} for key, tag, size in stored.rows)
        assert client.table(TABLE).put_many(documents).written == len(stored.rows)
        for key, size in stored.pairs:
            client.kv(NAMESPACE).put(key, body(size))
    stored.schema_ids.append(wire.register(TABLE, *FIELDS, PAD))
    return stored


@pytest.fixture(scope="module", params=["lmdb", "memory"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    engine: Engine = MemoryEngine()
    if request.param == "lmdb":
        engine = open_lmdb(tmp_path_factory.mktemp("sizes") / "data")
    with served_node(engine) as served:
        yield fill(Wire(served.endpoint))
    engine.close()


bounds = st.tuples(st.integers(0, len(sizes())), st.integers(0, len(sizes()))).map(sorted)
page_sizes = st.sampled_from([0, 0, 1_000, 300, 37])
limits = st.sampled_from([0, 0, 0, 17, 400])


def expected(whole: list[Any], limit: int, *, reverse: bool) -> list[Any]:
    found = whole[::-1] if reverse else whole
    return found[:limit] if limit else found


@settings(max_examples=examples(5))
@given(
    within=bounds, reverse=st.booleans(), limit=limits, page_size=page_sizes, packed=st.booleans(), paged=st.booleans()
)
@example(within=[0, len(sizes())], reverse=False, limit=0, page_size=0, packed=False, paged=False)
@example(within=[0, len(sizes())], reverse=True, limit=0, page_size=0, packed=True, paged=True)
def test_pairs_of_every_size_are_scanned(
    stored: Stored, within: list[int], reverse: bool, limit: int, page_size: int, packed: bool, paged: bool
) -> None:
    whole = stored.pairs[within[0] : within[1]]
    if not whole:
        return
    request = kv_pb2.KvScanRequest(
        namespace=NAMESPACE, reverse=reverse, limit=limit, page_size=page_size, packed=packed
    )
    request.range.start, request.range.end = whole[0][0], whole[-1][0] + b"\0"
    found: list[tuple[bytes, bytes]] = []
    while True:
        replies = [stored.wire.kv.ScanPage(request)] if paged else list(stored.wire.kv.Scan(request))
        for reply in replies:
            found += [(pair.key, pair.value) for pair in reply.pairs]
            if reply.HasField("packed"):
                keys = cut(reply.packed.keys, reply.packed.key_lengths)
                found += zip(keys, cut(reply.packed.values, reply.packed.value_lengths), strict=True)
        request.page_token = replies[-1].next_page_token
        if not request.page_token:
            break
    assert found == [(key, body(size)) for key, size in expected(whole, limit, reverse=reverse)]


def scanned(stored: Stored, request: documents_pb2.ScanRequest) -> list[dict[str, Any]]:
    """Return the rows of a scan, page after page, as documents."""
    found: list[dict[str, Any]] = []
    texts: dict[int, str] = {}
    while True:
        for reply in stored.wire.documents.Scan(request):
            assert len(reply.etags) == (len(reply.json_rows) if request.with_versions else 0)
            found += map(json.loads, reply.json_rows)
            for batch in reply.batches:
                if not reply.projected_schema and batch.schema_id not in texts:
                    texts[batch.schema_id] = schema_text(stored, batch.schema_id)
                schema = schema_of(reply.projected_schema or texts[batch.schema_id])
                rows = cut(batch.bodies, batch.lengths)
                assert len(batch.versions) == (12 * len(rows) if request.with_versions else 0)
                found += [decode_document(schema, row) for row in rows]
            request.page_token = reply.next_page_token
        if not request.page_token:
            return found


# Parsed once: for each row anew, it took half of the time of these tests.
schema_of = cache(parse_schema)


def schema_text(stored: Stored, schema_id: int) -> str:
    return str(stored.wire.schemas.Get(schemas_pb2.GetSchemaRequest(schema_id=schema_id)).version.schema)


FORMS: dict[str, dict[str, Any]] = {
    "as written": {},
    "through the newest schema": {"schema_id": -1},
    "projected": {"columns": ["id", "tag", "pad"]},
    "filtered": {"filter": "tag = 't1'"},
    "filtered by a default": {"filter": "tag = 't1' and pad != ''"},
    "JSON": {"format": common_pb2.DOCUMENT_FORMAT_JSON},
    "filtered JSON": {"format": common_pb2.DOCUMENT_FORMAT_JSON, "filter": "tag = 't1'"},
}


@settings(max_examples=examples(5))
@given(reverse=st.booleans(), limit=limits, page_size=page_sizes, with_versions=st.booleans(), index=st.booleans())
@example(reverse=False, limit=0, page_size=0, with_versions=True, index=False)
@example(reverse=True, limit=0, page_size=0, with_versions=False, index=True)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_size_are_scanned_in_every_form(
    stored: Stored, form: str, reverse: bool, limit: int, page_size: int, with_versions: bool, index: bool
) -> None:
    asked = dict(FORMS[form])
    if "schema_id" in asked:
        asked["schema_id"] = stored.schema_ids[asked["schema_id"]]
    request = documents_pb2.ScanRequest(
        table=table_name(TABLE),
        index="by_tag" if index else "",
        reverse=reverse,
        limit=limit,
        page_size=page_size,
        with_versions=with_versions,
        **asked,
    )
    whole = sorted(stored.rows, key=lambda row: (row[1], row[0])) if index else stored.rows
    whole = [row for row in whole if "filter" not in asked or row[1] == "t1"]
    found = scanned(stored, request)
    assert [row["id"] for row in found] == [row[0] for row in expected(whole, limit, reverse=reverse)]
    if "columns" in asked or "schema_id" in asked or "format" in asked:
        assert all(row["pad"] == PAD["default"] for row in found)
    if form == "as written":
        assert [row["body"] for row in found] == [body(row[2]) for row in expected(whole, limit, reverse=reverse)]


def test_many_documents_of_every_size_are_got_at_once(stored: Stored) -> None:
    drawn = random.Random(3)
    keys = [key for key, _, _ in stored.rows]
    drawn.shuffle(keys)
    keys[100:100] = ["absent", keys[7], "absent too"]
    bodies = {key: body(size) for key, _, size in stored.rows}
    with Client(stored.wire.endpoint) as client:
        table = client.table(TABLE)
        assert [found and found.value["body"] for found in table.get_many(keys)] == [bodies.get(key) for key in keys]
        assert table.get_many([]) == []


def test_a_reply_with_some_of_the_documents_says_when_to_read_the_others(stored: Stored) -> None:
    keys = [common_pb2.Key(parts=[common_pb2.Value(string=key)]) for key, _, _ in stored.rows]
    asked = {"table": table_name(TABLE), "keys": keys}
    first = stored.wire.documents.MultiGet(documents_pb2.MultiGetRequest(**asked, may_stop_early=True))
    assert 1 <= len(first.found) < len(keys)
    with pytest.raises(grpc.RpcError, match="ask for fewer keys, or set may_stop_early"):
        stored.wire.documents.MultiGet(documents_pb2.MultiGetRequest(**asked))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("initial_state", [False, True])
def test_changes_of_every_size_are_watched_from_the_past(stored: Stored, initial_state: bool, packed: bool) -> None:
    after = common_pb2.ReadAt(timestamp=common_pb2.Timestamp())
    options = watch_pb2.WatchOptions(initial_state=initial_state, with_previous=True)
    if not initial_state:
        options.after.CopyFrom(after)
    request = watch_pb2.WatchKeyValueRequest(namespace=NAMESPACE, options=options, packed=packed)
    found: dict[bytes, bytes] = {}
    stream = stored.watch.KeyValue(request, timeout=60)
    for reply in stream:
        found.update((change.key, change.value) for change in reply.changes)
        if reply.HasField("packed"):
            keys = cut(reply.packed.keys, reply.packed.key_lengths)
            found.update(zip(keys, cut(reply.packed.values, reply.packed.value_lengths), strict=True))
        if len(found) == len(stored.pairs):
            break
    stream.cancel()
    assert found == {key: body(size) for key, size in stored.pairs}


@pytest.mark.parametrize("initial_state", [False, True])
def test_documents_of_every_size_are_watched_as_json(stored: Stored, initial_state: bool) -> None:
    options = watch_pb2.WatchOptions(initial_state=initial_state)
    if not initial_state:
        options.after.timestamp.SetInParent()
    form = common_pb2.DOCUMENT_FORMAT_JSON
    request = watch_pb2.WatchTableRequest(table=table_name(TABLE), options=options, format=form)
    found: dict[str, int] = {}
    stream = stored.watch.Table(request, timeout=60)
    for reply in stream:
        for change in reply.changes:
            row = json.loads(change.document.json)
            found[row["id"]] = len(row["body"])
        if len(found) == len(stored.rows):
            break
    stream.cancel()
    assert set(found) == {key for key, _, _ in stored.rows}


def test_a_table_with_rows_of_every_size_is_checked(stored: Stored) -> None:
    request = tables_pb2.CheckTableRequest(database="db", name="docs")
    replies = list(stored.wire.tables.CheckTable(request))
    assert (replies[-1].done, replies[-1].rows_checked) == (True, len(stored.rows))
    assert not any(reply.problems for reply in replies)
