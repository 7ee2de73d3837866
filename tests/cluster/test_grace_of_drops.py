"""A dropped table once its grace is over: cleared by the collector, on real servers, through kills."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cortado.errors import CortadoError, InvalidArgument, NotFound, SnapshotTooOld
from cortado.store.client import Client, Index
from support.cluster import Cluster
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "long"}]}
CLEARED_S = 180.0
"""The collector of a node whose history is kept for hours comes by once a minute."""


def make(client: Client, name: str, retention_ms: int = 1_000) -> None:
    database = name.partition(".")[0]
    if database not in client.databases():
        client.create_database(database)
        client.schemas.register(database, json.dumps(ITEM))
    indexes = [Index("by_id", ["id"])]
    client.create_table(name, ["id"], subject=database, indexes=indexes, retention_ms=retention_ms)
    assert client.table(name).put_many({"id": number} for number in range(500)).written == 500


def until_cleared(client: Client, name: str) -> None:
    wait_until(lambda: name not in {each.name for each in client.dropped()}, f"{name} is cleared", CLEARED_S)


def keys_of(client: Client, name: str) -> list[int]:
    return [each.value["id"] for each in client.table(name).scan(index="by_id")]


def test_a_table_whose_grace_is_over_is_gone_for_good(client: Client, database: str) -> None:
    name = f"{database}.items"
    client.schemas.register(database, json.dumps(ITEM))
    make(client, name)
    before = client.now()
    client.drop_table(name)
    until_cleared(client, name)
    with pytest.raises(NotFound, match="no dropped table"):
        client.undrop_table(name)
    with pytest.raises(SnapshotTooOld):
        list(client.table(name).scan(at=before))
    make(client, name, retention_ms=0)
    assert keys_of(client, name) == list(range(500))
    assert client.verify_indexes(name).problems == ()


def test_a_subject_is_free_once_its_dropped_table_is_gone(client: Client, database: str) -> None:
    name = f"{database}.items"
    client.schemas.register(name, json.dumps(ITEM))
    client.create_table(name, ["id"], retention_ms=3_000)
    client.drop_table(name)
    with pytest.raises(InvalidArgument, match="the dropped table"):
        client.schemas.delete(name)
    until_cleared(client, name)
    assert client.schemas.delete(name) == [1]


def test_a_database_is_forgotten_after_the_last_of_its_tables(client: Client, database: str) -> None:
    client.schemas.register(database, json.dumps(ITEM))
    make(client, f"{database}.short")
    make(client, f"{database}.long", retention_ms=3_600_000)
    client.drop_database(database, cascade=True)
    until_cleared(client, f"{database}.short")
    assert client.undrop_database(database).tables == (f"{database}.long",)
    assert keys_of(client, f"{database}.long") == list(range(500))


@pytest.fixture
def many(three_nodes: Cluster) -> Iterator[Client]:
    with Client(three_nodes.endpoints, timeout_s=30) as opened:
        yield opened


def test_tables_come_and_go_while_leaders_are_killed(three_nodes: Cluster, many: Client) -> None:
    """Each call is answered once it has happened, by whichever leader: none has half an effect, or two."""
    for number in range(4):
        name = f"killed{number}.items"
        make(many, name, retention_ms=3_600_000)
        leader = three_nodes.leader()
        three_nodes.kill(leader)
        verbs: list[Any] = [
            lambda name=name: many.drop_table(name),
            lambda name=name: many.undrop_table(name),
            lambda name=name: many.rename_table(name, "other"),
            lambda name=name: many.rename_table(f"{name.partition('.')[0]}.other", "items"),
            lambda name=name: many.truncate_table(name),
            lambda name=name: many.undrop_table(name, as_name="before"),
            lambda name=name: many.drop_database(name.partition(".")[0], cascade=True),
            lambda name=name: many.undrop_database(name.partition(".")[0]),
        ]
        for verb in verbs[: len(verbs) // 2] if number % 2 else verbs:
            verb()
        three_nodes.start(leader)
        if number % 2:
            assert keys_of(many, name) == list(range(500))
        else:
            assert keys_of(many, name) == []
            assert keys_of(many, f"killed{number}.before") == list(range(500))
        three_nodes.wait_converged()


def test_clearing_goes_on_with_the_next_leader(three_nodes: Cluster, many: Client) -> None:
    name = "cleared.items"
    make(many, name)
    kept = "cleared.kept"
    make(many, kept)
    many.drop_table(name)
    leader = three_nodes.leader()
    three_nodes.kill(leader)
    until_cleared(many, name)
    three_nodes.start(leader)
    assert keys_of(many, kept) == list(range(500))
    with pytest.raises(CortadoError):
        many.undrop_table(name)
    make(many, name)
    assert keys_of(many, name) == list(range(500))
    three_nodes.wait_converged()
