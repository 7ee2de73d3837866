"""Arguments that no type checker stopped: those of a wrong type, text that is no Unicode, numbers beyond any bound.

Each is one error of ours that names the argument, never protobuf's or Python's, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.store.client import Client, Index, Put, Tls
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

HALF = "\ud800"
NO: Any = "no"
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": "string"},
        {"name": "x", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ],
}
ROW = {"a": 1, "b": "x", "x": Decimal("1.00")}

CASES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "an etag that is no Unicode": (lambda c, t: t.put(ROW, if_etag=HALF), "if_etag"),
    "an etag that is no timestamp": (lambda c, t: t.delete(1, if_etag="no"), "if_etag"),
    "an etag that is no text": (lambda c, t: t.put(ROW, if_etag=5), "if_etag"),
    "a mode that is no text": (lambda c, t: t.put_many([ROW], mode=["insert"]), "mode"),
    "a filter that is no text": (lambda c, t: t.scan(filter=5), "filter"),
    "a filter of bytes": (lambda c, t: t.scan(filter=b"a = 1"), "filter"),
    "a filter that is no Unicode": (lambda c, t: t.scan(filter=HALF), "filter"),
    "an index that is no text": (lambda c, t: t.scan(index=5), "index"),
    "columns that are no list": (lambda c, t: t.scan(columns=5), "columns"),
    "columns as one text": (lambda c, t: t.scan(columns="a"), "columns"),
    "a column that is no text": (lambda c, t: t.scan(columns=["a", None]), "columns[1]"),
    "a column that is no Unicode": (lambda c, t: t.scan(columns=[HALF]), "columns[0]"),
    "changes that are no dict": (lambda c, t: t.update(1, []), "changes"),
    "a path that is no text": (lambda c, t: t.update(1, {5: 1}), "changes"),
    "keys that are no list": (lambda c, t: t.get_many(5), "keys"),
    "rows that are not several": (lambda c, t: t.put_many(5), "documents"),
    "one row in place of several": (lambda c, t: t.put_many(ROW), "documents"),
    "a batch that is no tuple": (lambda c, t: t.put_batches([5]), "batches"),
    "a schema id below zero": (lambda c, t: t.put_batches([(-1, b"xx", b"\2\0\0\0")]), "schema_id"),
    "parts below zero": (lambda c, t: t.split(-1), "parts"),
    "parts beyond 32 bits": (lambda c, t: t.split(1 << 40), "parts"),
    "parts that are no int": (lambda c, t: t.split(1.5), "parts"),
    "parts as a bool": (lambda c, t: t.split(True), "parts"),
    "a key of thousands of digits": (lambda c, t: t.get(10**5000), "key.a"),
    "a decimal of a million digits": (lambda c, t: c.table("db.dec").get(Decimal("1e999999")), "key.x"),
    "a decimal of a million places": (lambda c, t: c.table("db.dec").get(Decimal("1e-999999")), "key.x"),
    "a whole decimal of thousands of digits": (lambda c, t: c.table("db.dec").get(10**5000), "key.x"),
    "a table name that is no text": (lambda c, t: c.table(None), "table"),
    "a database that is no text": (lambda c, t: c.create_database(5), "database"),
    "a namespace that is no text": (lambda c, t: c.kv(5), "namespace"),
    "no list of key parts": (lambda c, t: c.create_table("db.n", key=None), "key"),
    "a key part that is no Unicode": (lambda c, t: c.create_table("db.n", key=[HALF]), "key[0]"),
    "an index that is none": (lambda c, t: c.create_table("db.n", key=["a"], indexes=["i"]), "indexes[0]"),
    "indexes that are one": (lambda c, t: c.create_table("db.n", key=["a"], indexes=Index("i", ["b"])), "indexes"),
    "a subject that is no text": (lambda c, t: c.schemas.register(5, SCHEMA), "subject"),
    "a schema that is no Unicode": (lambda c, t: c.schemas.register("s", HALF), "schema"),
    "a version that is no int": (lambda c, t: c.schemas.get("db.t", "x"), "version"),
    "a version as a bool": (lambda c, t: c.schemas.get("db.t", True), "version"),
    "a schema id that is no int": (lambda c, t: c.schemas.get_by_id("x"), "schema_id"),
    "a schema id beyond 32 bits": (lambda c, t: c.schemas.get_by_id(1 << 40), "schema_id"),
    "operations that are no list": (lambda c, t: c.kv("n").batch(5), "operations"),
    "an endpoint that is no text": (lambda c, t: Client(5), "endpoint"),  # type: ignore[arg-type]
    "a timeout that is no number": (lambda c, t: c.with_timeout("x"), "timeout_s"),
    "a timeout as a bool": (lambda c, t: c.with_timeout(True), "timeout_s"),
    "a timeout of thousands of digits": (lambda c, t: c.with_timeout(10**5000), "timeout_s"),
    "encryption that is a path": (lambda c, t: Client(tls="ca.crt"), "tls"),  # type: ignore[arg-type]
    "a certificate at no possible path": (lambda c, t: Client(tls=Tls(ca=HALF)), "tls.ca"),
    "coalescing by a text": (lambda c, t: Client(coalesce="no"), "coalesce"),  # type: ignore[arg-type]
    "a direction that is a text": (lambda c, t: t.scan(reverse="false"), "reverse"),
    "a direction of pairs that is a text": (lambda c, t: c.kv("n").scan(reverse="false"), "reverse"),
    "a condition that is a text": (lambda c, t: c.kv("n").put(b"k", b"v", if_absent="false"), "if_absent"),
    "a condition within a batch": (lambda c, t: c.kv("n").batch([Put(b"k", b"v", if_present=NO)]), "if_present"),
    "a limit of thousands of digits": (lambda c, t: t.scan(limit=10**5000), "limit"),
    "a limit that is a long text": (lambda c, t: t.scan(limit="9" * 100_000), "limit"),
    "a mode that is a long text": (lambda c, t: t.put_many([ROW], mode="x" * 100_000), "mode"),
    "a watch's state by a text": (lambda c, t: c.kv("n").watch(initial_state="no"), "initial_state"),
    "a watch's earlier values by a text": (lambda c, t: t.watch(with_previous="no"), "with_previous"),
    "a watch that begins at a number": (lambda c, t: t.watch(after=5), "after"),
    "a watch that ends at no time": (lambda c, t: t.watch(until="noon"), "until"),
    "a watch that ends without a zone": (lambda c, t: t.watch(until=datetime(2026, 1, 1)), "until"),
    "unchanged since a text": (lambda c, t: t.put_many([ROW], unchanged_since="0.0.0"), "unchanged_since"),
    "progress that is no function": (lambda c, t: t.put_many([ROW], progress=True), "progress"),
    "progress of a check that is none": (lambda c, t: c.verify_indexes("db.t", progress=5), "progress"),
    "chunks of thousands of digits": (lambda c, t: t.put_many([ROW], chunk_rows=10**5000), "chunk_rows"),
    "an update of no columns": (lambda c, t: t.update_many([ROW], []), "columns"),
    "an update of columns as one text": (lambda c, t: t.update_many([ROW], "a"), "columns"),
    "an update by Arrow without columns": (lambda c, t: t.put_arrow([], mode="update"), "columns"),
    "columns beside an insert": (lambda c, t: t.put_arrow([], mode="insert", columns=["a"]), "columns"),
    "a bulk load of documents that deletes": (lambda c, t: t.put_many([ROW], mode="delete"), "mode"),
    "keys that are not several": (lambda c, t: t.delete_many(5), "keys"),
    "batches of Arrow that are none": (lambda c, t: t.put_arrow([5]), "batches"),
    "a document type that is no class": (lambda c, t: c.table("db.t", document_type=[]).get(1), "document_type"),
    "a schema version that is no int": (lambda c, t: c.table("db.t", schema_version="1"), "schema_version"),
    "a unique index by a text": (
        lambda c, t: c.create_table("db.n", ["a"], indexes=[Index("i", ["b"], NO)]),
        "indexes[0].unique",
    ),
    "a mode of compatibility that is none": (lambda c, t: c.schemas.set_compatibility("db.t", 5), "mode"),
    "a subject in a list": (lambda c, t: c.schemas.get(["db.t"]), "subject"),
    "members at a text": (lambda c, t: c.admin.members.list(at_leader="no"), "at_leader"),
    "a member that is no text": (lambda c, t: c.admin.members.add(5, "127.0.0.1:1"), "node_id"),
    "an address that is no text": (lambda c, t: c.admin.members.add("n9", 5), "peer_address"),
    "a leader that is no text": (lambda c, t: c.admin.members.transfer_leader(5), "to_node_id"),
    "a time that is no Unicode": (lambda c, t: t.get(1, at=HALF), "at"),
    "a week date": (lambda c, t: t.get(1, at="2020-W01-1T00:00:00Z"), "at"),
    "a time of the last century": (lambda c, t: t.get(1, at=datetime(1969, 1, 1, tzinfo=UTC)), "at"),
}


@pytest.fixture(scope="module")
def opened(server: ServerProcess) -> Any:
    with Client(server.endpoint) as client:
        client.create_database("db")
        client.schemas.register("db.t", SCHEMA)
        client.create_table("db.t", key=["a"])
        client.create_table("db.dec", key=["x"], subject="db.t")
        client.table("db.t").put(ROW)
        yield client


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_argument_is_named_and_changes_nothing(opened: Client, name: str) -> None:
    act, field = CASES[name]
    table = opened.table("db.t")
    before = list(table.scan())
    with pytest.raises(InvalidArgument) as refused:
        found = act(opened, table)
        list(found)
    assert refused.value.field == field
    assert len(str(refused.value)) < 1_000
    assert list(table.scan()) == before


def test_what_can_be_walked_once_is_not_taken_for_nothing(opened: Client) -> None:
    made = opened.create_table("db.once", ["a"], subject="db.t", indexes=iter([Index("by_b", ["b"])]))  # type: ignore[arg-type]
    assert [index.name for index in made.indexes] == ["by_b"]
    found = opened.table("db.t").scan(columns=iter(["b"]))  # type: ignore[arg-type]
    assert [document.value for document in found] == [{"b": "x"}]
