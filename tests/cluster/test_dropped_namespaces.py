"""Namespaces that are dropped, brought back and cleared under everything that reads and writes their pairs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import AlreadyExists, CortadoError, InvalidArgument, NotFound, SnapshotTooOld, WriteConflict
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.restore import RestoreRequest, restore_backup
from cortado.store.client import AsyncClient, Client
from cortado.store.client.kv import Put
from cortado.store.client.watch import Changed, Deleted
from support.command_line import CommandLine
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

FIVE = {b"k%d" % number: b"v%d" % number for number in range(5)}
REFUSED, NOT_FOUND = 2, 3


@pytest.fixture
def name(client: Client, database: str) -> str:
    """A namespace of five pairs. The one whose name goes on behind its own is another one."""
    for each in (database, f"{database}-other"):
        client.kv(each).batch([Put(key, value) for key, value in FIVE.items()])
    return database


def found(client: Client, name: str, **options: Any) -> dict[bytes, bytes]:
    return {each.key: each.value for each in client.kv(name).scan(**options)}


def test_what_was_dropped_is_not_there_and_is_at_its_time(client: Client, server: ServerProcess, name: str) -> None:
    before = client.now()
    record = client.drop_namespace(name)
    assert (record.kind, record.name, record.table_id, record.is_clearing) == ("namespace", name, 0, False)
    assert record in client.dropped()
    with Client(server.endpoint) as other:
        for each in (client, other):
            kv = each.kv(name)
            assert kv.get(b"k1") is None
            assert kv.get_many([b"k1", b"k2"]) == [None, None]
            assert found(each, name) == found(each, name, limit=3) == found(each, name, reverse=True) == {}
            assert name not in each.namespaces() and f"{name}-other" in each.namespaces()
            assert found(each, f"{name}-other") == FIVE
            then = each.at(before)
            pair = kv.get(b"k1", at=before)
            assert pair is not None and pair.value == b"v1"
            assert found(each, name, at=before) == found(then, name) == FIVE
            assert list(reversed(found(each, name, at=before, reverse=True))) == list(FIVE)
            assert [each.value for each in then.kv(name).get_many([b"k1", b"k2"]) if each] == [b"v1", b"v2"]
            assert name in then.namespaces()


def test_what_is_written_after_a_drop_meets_nothing_of_what_was_there(client: Client, name: str) -> None:
    kv = client.kv(name)
    kv.add(b"count", 5)
    client.drop_namespace(name)
    assert kv.add(b"count", 2) == 2
    kv.put(b"k1", b"new", if_absent=True)
    assert kv.delete(b"k2") is False
    assert found(client, name) == {b"count": (2).to_bytes(8), b"k1": b"new"}
    assert kv.delete_range(prefix=b"") == 2


def test_what_comes_back_has_its_pairs_and_its_history(client: Client, name: str) -> None:
    before = client.now()
    etag = client.kv(name).put(b"k3", b"changed")
    client.drop_namespace(name)
    gone = client.now()
    client.undrop_namespace(name)
    assert found(client, name) == {**FIVE, b"k3": b"changed"}
    client.kv(name).put(b"k3", b"again", if_etag=etag)
    assert found(client, name, at=before) == FIVE
    assert found(client, name, at=gone) == {}
    assert name not in [each.name for each in client.dropped()]


def test_it_does_not_come_back_over_what_was_written_since(client: Client, name: str) -> None:
    first = client.drop_namespace(name)
    client.kv(name).put(b"k1", b"new")
    with pytest.raises(AlreadyExists, match=f"namespace {name}"):
        client.undrop_namespace(name)
    second = client.drop_namespace(name)
    with pytest.raises(NotFound):
        client.undrop_namespace(name, number=second.number + 1)
    client.undrop_namespace(name, number=first.number)
    assert found(client, name) == FIVE
    client.drop_namespace(name)
    client.undrop_namespace(name, number=second.number)
    assert found(client, name) == {b"k1": b"new"}


def test_there_is_nothing_to_drop_where_there_is_no_pair(client: Client, name: str) -> None:
    with pytest.raises(NotFound, match="no namespace nothing-there"):
        client.drop_namespace("nothing-there")
    with pytest.raises(NotFound, match="no dropped namespace nothing-there"):
        client.undrop_namespace("nothing-there")
    client.drop_namespace(name)
    with pytest.raises(NotFound):
        client.drop_namespace(name)
    for wrong in ("-x", "", "a b"):
        with pytest.raises(InvalidArgument):
            client.drop_namespace(wrong)


def test_a_scan_that_has_begun_goes_on_at_its_time(client: Client, name: str) -> None:
    kv = client.kv(name)
    for first in range(0, 20_000, 5_000):
        kv.batch([Put(b"x%05d" % number, b"v" * 100) for number in range(first, first + 5_000)])
    scan = kv.scan(prefix=b"x")
    next(scan)
    client.drop_namespace(name)
    kv.put(b"x1", b"new")
    assert 1 + sum(1 for _ in scan) == 20_000


@pytest.mark.parametrize("how", ["reads", "scans", "writes", "puts alone"])
@pytest.mark.parametrize("end", ["drop", "drop and undrop"])
def test_a_transaction_conflicts_with_a_drop(client: Client, name: str, how: str, end: str) -> None:
    isolation: Any = "serializable" if how in ("reads", "scans") else "snapshot"
    with pytest.raises(WriteConflict) as refused, client.transaction(isolation=isolation) as txn:
        if how == "reads":
            assert txn.kv(name).get(b"none") is None
            txn.kv(f"{name}-other").put(b"k", b"v")
        elif how == "scans":
            assert len(list(txn.kv(name).scan(b"x"))) == 0
            txn.kv(f"{name}-other").put(b"k", b"v")
        else:
            txn.kv(f"{name}-other").get(b"k1")
            txn.kv(name).put(b"new", b"v") if how == "writes" else txn.kv(name).add(b"count", 1)
        client.drop_namespace(name)
        if end == "drop and undrop":
            client.undrop_namespace(name)
        if how == "reads":
            assert len(list(txn.kv(name).scan())) == 5, "all of its reads are of one state"
    assert (refused.value.kind, refused.value.key) == ("namespace", name)
    assert client.kv(name).get(b"new") is None


def test_a_large_commit_conflicts_with_a_drop(client: Client, name: str) -> None:
    with pytest.raises(WriteConflict) as refused, client.transaction() as txn:
        txn.kv(f"{name}-other").get(b"k1")
        for number in range(500):
            txn.kv(name).put(b"%d" % number, b"v")
        client.drop_namespace(name)
    assert (refused.value.kind, refused.value.key) == ("namespace", name)
    assert found(client, name) == {}


def test_own_writes_are_seen_over_the_pairs_of_the_start(client: Client, name: str) -> None:
    with pytest.raises(WriteConflict), client.transaction() as txn:
        assert txn.kv(name).get(b"k1") is not None
        txn.kv(name).put(b"own", b"v")
        txn.kv(name).delete(b"k1")
        client.drop_namespace(name)
        client.kv(name).put(b"of another life", b"v")
        assert [each.key for each in txn.kv(name).scan()] == [b"k0", b"k2", b"k3", b"k4", b"own"]


def test_a_watch_tells_what_changed_and_then_that_the_pairs_are_gone(client: Client, name: str) -> None:
    before = client.now()
    watch = client.kv(name).watch(resolved_ms=20)
    next(iter(watch))
    client.kv(name).delete(b"k3")
    client.drop_namespace(name)
    client.kv(name).put(b"k3", b"of another life")
    assert [type(each) for each in until_its_end(watch, name)] == [Deleted]
    later = client.kv(name).watch(after=before, resolved_ms=20)
    assert [each.key for each in until_its_end(later, name)] == [b"k3"]
    new = client.kv(name).watch(initial_state=True, resolved_ms=20)
    assert next(each for each in new if isinstance(each, Changed)).value == b"of another life"
    new.close()


def until_its_end(watch: Iterator[Any], name: str) -> list[Any]:
    told = []
    with pytest.raises(NotFound, match=rf"no namespace {name}, which was dropped at "):
        for event in watch:
            told += [event] if isinstance(event, Changed | Deleted) else []
    return told


def test_a_watch_goes_on_where_the_pairs_come_back(client: Client, name: str) -> None:
    client.kv(name).put(b"k1", b"first")
    watch = client.kv(name).watch(resolved_ms=60_000)
    next(iter(watch))
    client.drop_namespace(name)
    client.undrop_namespace(name)
    client.kv(name).put(b"k9", b"v9")
    event = next(each for each in watch if isinstance(each, Changed))
    assert event.key == b"k9"
    watch.close()


def test_both_faces_have_it(server: ServerProcess, name: str) -> None:
    async def use() -> None:
        async with AsyncClient(server.endpoint) as client:
            record = await client.drop_namespace(name)
            assert name not in await client.namespaces()
            await client.undrop_namespace(name, number=record.number)
            assert name in await client.namespaces()

    asyncio.run(use())


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def cli(
    server: ServerProcess, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    return CommandLine(server.endpoint, capfdbinary, monkeypatch)


def test_the_command_line_asks_drops_lists_and_brings_back(cli: CommandLine, client: Client, name: str) -> None:
    cli("namespace", "drop", name, expect=REFUSED)
    assert "--yes" in cli.err
    cli("namespace", "drop", name, expect=130, stdin=b"n\n")
    assert cli("namespace", "drop", name, "--dry-run").startswith(b"would drop all pairs of namespace")
    assert found(client, name) == FIVE
    before = str(client.now())
    assert {"namespace": name} in cli.json("namespace", "list")
    (record,) = cli.json("namespace", "drop", name, "--yes")
    assert (record["kind"], record["name"]) == ("namespace", name)
    assert record in cli.json("namespace", "list", "--dropped")
    assert record not in cli.json("table", "list", "--dropped")
    assert {"namespace": name} not in cli.json("namespace", "list")
    assert {"namespace": name} in cli.json("namespace", "list", "--at", before)
    cli("namespace", "list", "--at", before, "--dropped", expect=REFUSED)
    for command in (["namespace", "drop", name, "--yes"], ["namespace", "drop", name, "--dry-run"]):
        cli(*command, expect=NOT_FOUND)
    cli("kv", "put", name, "k1", "new")
    [version] = cli.json("debug", "mvcc", "kv", name, "k1")
    assert f"kv {record['number']} (" in json.dumps(version), "of the generation that the name means"
    cli("namespace", "undrop", name, expect=4)
    cli("kv", "delete", name, "k1")
    assert cli.json("namespace", "undrop", name, "--number", str(record["number"])) == [{"namespace": name}]
    assert found(client, name) == FIVE


# --- over time -------------------------------------------------------------------------------------------------------


def test_a_namespace_whose_grace_is_over_is_cleared(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        kv = client.kv("n")
        kv.batch([Put(b"%04d" % number, b"v" * 50) for number in range(3_000)])
        client.kv("kept").put(b"k", b"v")
        before = client.now()
        client.drop_namespace("n")
        kv.put(b"new", b"v")
        wait_until(lambda: not client.dropped(), "it is cleared")
        with pytest.raises(NotFound, match="no dropped namespace n"):
            client.undrop_namespace("n")
        with pytest.raises(SnapshotTooOld):
            found(client, "n", at=before)
        with pytest.raises(SnapshotTooOld):
            next(iter(kv.watch(after=before)))
        assert found(client, "n") == {b"new": b"v"}
        assert client.namespaces() == ["kept", "n"]


@pytest.mark.parametrize("verb", ["drop", "undrop"])
def test_a_node_that_is_killed_knows_what_it_has_acknowledged(tmp_path: Path, verb: str) -> None:
    with running_server(tmp_path / "data") as process, Client(process.endpoint, timeout_s=30) as client:
        for each in ("there", "gone"):
            client.kv(each).batch([Put(key, value) for key, value in FIVE.items()])
        client.drop_namespace("gone")
        states = [state_of(client, client.now())]
        client.drop_namespace("there") if verb == "drop" else client.undrop_namespace("gone")
        states.append(state_of(client, client.now()))
        assert states[0][1:] != states[1][1:]
        process.kill()
        process.start()
        for state in states:
            assert state_of(client, state[0]) == state
        assert state_of(client, client.now())[1:] == states[1][1:]


def state_of(client: Client, ts: Any) -> Any:
    then = client.at(ts)
    return ts, then.namespaces(), [found(then, each) for each in ("there", "gone")]


@pytest.mark.parametrize("history", [False, True])
def test_a_backup_has_what_was_dropped_and_it_comes_back_there(tmp_path: Path, history: bool) -> None:
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        for each in ("back", "new", "gone"):
            client.kv(each).batch([Put(key, value) for key, value in FIVE.items()])
            client.drop_namespace(each)
        client.undrop_namespace("back")
        client.kv("new").put(b"new", b"v")
        create_backup(client, BackupRequest(tmp_path / "backup", history=history))
    with running_server(tmp_path / "restored") as server, Client(server.endpoint, read_from="any") as client:
        restore_backup(client, RestoreRequest(tmp_path / "backup"))
        assert client.namespaces() == ["back", "new"]
        assert found(client, "back") == FIVE
        assert found(client, "new") == {b"new": b"v"}
        assert sorted(each.name for each in client.dropped()) == ["gone", "new"]
        client.undrop_namespace("gone")
        assert found(client, "gone") == FIVE


def test_writers_beside_drops_and_undrops_lose_nothing(client: Client, database: str) -> None:
    """Each counter was added to as often as was acknowledged, over all lives of the namespace."""
    from threading import Event, Thread

    stop, added = Event(), [0] * 4

    def add(place: int, client: Client) -> None:
        while not stop.is_set():
            client.kv(database).add(b"%d" % place, 1)
            added[place] += 1

    records: list[int] = []

    def tried(verb: Callable[[], Any]) -> Any:
        with suppress(CortadoError):
            return verb()

    threads = [Thread(target=add, args=(place, client)) for place in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        record = tried(lambda: client.drop_namespace(database))
        if record is not None:
            records.append(record.number)
        tried(lambda: client.undrop_namespace(database))
    stop.set()
    for thread in threads:
        thread.join()
    total = [0] * 4
    tried(lambda: client.drop_namespace(database))
    for record in [each for each in client.dropped() if each.name == database]:
        client.undrop_namespace(database, number=record.number)
        for pair in client.kv(database).scan():
            total[int(pair.key)] += int.from_bytes(pair.value)
        client.kv(database).delete_range(prefix=b"")
    assert records and total == added
