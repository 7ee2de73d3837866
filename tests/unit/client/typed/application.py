"""An application, as a type checker sees it: ``mypy --strict`` must agree with each line, and not with those marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

from cortado import AsyncClient, AsyncTransaction, Client, Timestamp, Transaction
from cortado.store.client import (
    AsyncKeyValue,
    AsyncTable,
    BulkResult,
    Document,
    KeyValue,
    KvPair,
    Members,
    SchemaVersion,
    Table,
)


@dataclass
class Flight:
    number: int


class Leg(TypedDict):
    number: int


def threads(client: Client, mapping: Mapping[str, Any]) -> None:
    assert_type(client.at("0.1.2").with_timeout(1), Client)
    assert_type(client.now(), Timestamp)
    kv = client.kv("n")
    assert_type(kv, KeyValue)
    assert_type(kv.get(b"k"), KvPair | None)
    assert_type([pair.value for pair in kv.scan()], list[bytes])
    plain = client.table("d.t")
    assert_type(plain, Table[dict[str, Any]])
    assert_type(plain.put(mapping), str)
    assert_type(plain.put({"number": 1}), str)
    assert_type(plain.put_many([mapping]), BulkResult)
    typed = client.table("d.t", document_type=Flight)
    assert_type(typed, Table[Flight])
    assert_type(typed.get(1), Document[Flight] | None)
    assert_type(typed.get_many([1]), list[Document[Flight] | None])
    assert_type(typed.update(1, {"number": 2}).value, Flight)
    assert_type([document.value for document in typed.scan()], list[Flight])
    typed.put(Flight(1))
    typed.put_many(Flight(number) for number in range(3))
    typed.put({"number": 1})  # type: ignore[arg-type]
    typed.put_many([1])  # type: ignore[list-item]
    legs = client.table("d.t", document_type=Leg)
    assert_type(legs, Table[Leg])
    legs.put({"number": 1})
    legs.put({"numbr": 1})  # type: ignore[typeddict-item, typeddict-unknown-key]
    kv.put("k", b"v")  # type: ignore[arg-type]
    assert_type(client.schemas.get("s"), SchemaVersion)
    assert_type(client.admin.members.list(), Members)
    with client.transaction(isolation="serializable") as txn:
        assert_type(txn, Transaction)
        assert_type(txn.table("d.t", document_type=Flight), Table[Flight])
        assert_type(txn.kv("n"), KeyValue)
    client.transaction(isolation="best")  # type: ignore[arg-type]
    assert_type(client.run(lambda txn: txn.kv("n").get(b"k")), KvPair | None)
    assert_type(client.snapshot(stale_ms=5), Client)
    assert_type(kv.add(b"k", 1, min=0), int)


async def booked(txn: AsyncTransaction) -> int:
    await txn.table("d.t", document_type=Flight).put(Flight(1))
    return 1


async def tasks(client: AsyncClient, mapping: Mapping[str, Any]) -> None:
    assert_type(client.at("0.1.2").with_timeout(1), AsyncClient)
    assert_type(await client.now(), Timestamp)
    kv = client.kv("n")
    assert_type(kv, AsyncKeyValue)
    assert_type(await kv.get(b"k"), KvPair | None)
    assert_type([pair.value async for pair in kv.scan()], list[bytes])
    assert_type(await client.table("d.t").put(mapping), str)
    typed = client.table("d.t", document_type=Flight)
    assert_type(typed, AsyncTable[Flight])
    assert_type(await typed.get(1), Document[Flight] | None)
    assert_type([document.value async for document in typed.scan()], list[Flight])
    assert_type(await typed.put_many([Flight(1)]), BulkResult)
    await typed.put({"number": 1})  # type: ignore[arg-type]
    await client.table("d.t", document_type=Leg).put({"number": 1})
    assert_type(await client.schemas.get("s"), SchemaVersion)
    assert_type(await client.admin.members.list(), Members)
    async with client.transaction() as txn:
        assert_type(txn, AsyncTransaction)
        assert_type(txn.table("d.t", document_type=Flight), AsyncTable[Flight])
    assert_type(await client.run(booked), int)
    await client.run(lambda txn: 1)  # type: ignore[arg-type, return-value]
