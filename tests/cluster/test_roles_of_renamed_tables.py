"""A role is granted on a name. Calls that reach a table in another way than by its present name need rights on that
name, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

import grpc
import pytest

from cortado.errors import NotFound, PermissionDenied, TooLarge
from cortado.proto.v1 import tables_pb2, tables_pb2_grpc
from cortado.store.auth.changes import GRANTS_MAX
from cortado.store.client import Changed, Client, Index
from cortado.store.clock.timestamp import Timestamp
from cortado.store.server.convert import timestamp_message
from support.server_process import running_server

pytestmark = pytest.mark.process

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'


@dataclass
class World:
    """``etl`` writes tables one by one."""

    endpoint: str
    admin: Client
    admin_token: str
    etl: Client
    etl_token: str
    numbers: Iterator[int] = field(default_factory=count)

    def table(self) -> str:
        """A new table that etl may write."""
        name = f"shop.t{next(self.numbers)}"
        self.admin.create_table(name, key=["id"], subject="shop.rows")
        self.admin.table(name).put({"id": 1})
        self.admin.admin.auth.grant("etl", "writer", f"table:{name}")
        return name

    def rename(self, name: str, role: str = "") -> str:
        """To a name on which etl has that role."""
        new = f"hidden{next(self.numbers)}"
        if role:
            self.admin.admin.auth.grant("etl", role, f"table:shop.{new}")
        self.admin.rename_table(name, new)
        return f"shop.{new}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_server(tmp_path_factory.mktemp("renamed") / "data") as server:
        with Client(server.endpoint) as anybody:
            anybody.create_database("shop")
            anybody.schemas.register("shop.rows", SCHEMA)
            etl, root = anybody.admin.auth.create("etl").token, anybody.admin.auth.enable("root").token
            assert etl is not None and root is not None
        with Client(server.endpoint, token=root.text) as admin, Client(server.endpoint, token=etl.text) as client:
            yield World(server.endpoint, admin, root.text, client, etl.text)


# --- watches ---------------------------------------------------------------------------------------------------


def test_a_watch_ends_where_its_table_gets_a_name_that_its_caller_may_not_read(world: World) -> None:
    name = world.table()
    with world.etl.table(name).watch(after=world.admin.clock().last_applied, resolved_ms=60_000) as watch:
        world.admin.table(name).put({"id": 2})
        assert _changed(watch) == 2
        world.admin.table(world.rename(name)).put({"id": 3})
        with pytest.raises(PermissionDenied) as refused:
            _changed(watch)
    assert refused.value.resource == f"the name that table:{name} has now"


def test_a_watch_goes_on_under_a_name_that_its_caller_may_read_until_it_may_not(world: World) -> None:
    name = world.table()
    with world.etl.table(name).watch(after=world.admin.clock().last_applied) as watch:
        world.admin.table(name).put({"id": 2})
        assert _changed(watch) == 2
        new = world.rename(name, "reader")
        world.admin.table(new).put({"id": 3})
        assert _changed(watch) == 3
        world.admin.admin.auth.revoke_grant("etl", "reader", f"table:{new}")
        with pytest.raises(PermissionDenied):
            _changed(watch)


def test_a_watch_of_a_table_that_is_undropped_under_another_name_ends(world: World) -> None:
    name = world.table()
    database, _, table = name.partition(".")
    with world.etl.table(name).watch(after=world.admin.clock().last_applied, resolved_ms=60_000) as watch:
        world.admin.table(name).put({"id": 2})
        assert _changed(watch) == 2
        world.admin.drop_table(name)
        world.admin.undrop_table(name, as_name=f"{table}back")
        world.admin.table(f"{database}.{table}back").put({"id": 3})
        with pytest.raises((PermissionDenied, NotFound)):
            _changed(watch)


def _changed(watch: Iterator[object]) -> object:
    """The key of the next change."""
    return next(each.key[0] for each in watch if isinstance(each, Changed))


# --- the past --------------------------------------------------------------------------------------------------

_READS: dict[str, Callable[[Client, str, Timestamp], object]] = {
    "get": lambda client, name, at: client.table(name).get(1, at=at),
    "get many": lambda client, name, at: client.table(name).get_many([1, 2], at=at),
    "scan": lambda client, name, at: list(client.table(name).scan(at=at)),
    "count": lambda client, name, at: client.table(name).count(at=at),
    "split": lambda client, name, at: client.table(name).split(2, at=at),
    "watch": lambda client, name, at: _first(client, name, after=at),
    "state": lambda client, name, at: _first(client, name, after=at, initial_state=True),
    "window": lambda client, name, at: client.table(name).window(after=at),
    "check": lambda client, name, at: client.verify_indexes(name, at=at),
}


def _first(client: Client, name: str, **options: object) -> object:
    with client.table(name).watch(**options) as watch:  # type: ignore[arg-type]
        return next(iter(watch))


@pytest.mark.parametrize("read", _READS)
def test_the_past_of_a_table_is_read_by_who_may_read_it_now(world: World, read: str) -> None:
    name = world.table()
    at = world.admin.clock().now
    ask = _READS[read]
    ask(world.etl, name, at)
    new = world.rename(name)
    # Another one has the name now, as after a load beside the old table.
    world.admin.create_table(name, key=["id"], subject="shop.rows")
    with pytest.raises(PermissionDenied) as refused:
        ask(world.etl, name, at)
    assert refused.value.resource == f"the name that table:{name} has now"
    ask(world.admin, name, at)
    world.admin.admin.auth.grant("etl", "reader", f"table:{new}")
    ask(world.etl, name, at)


def test_lists_of_the_past_leave_out_what_is_hidden_now(world: World) -> None:
    name = world.table()
    at = world.admin.clock().now
    assert name in _listed(world, world.etl_token, at)
    new = world.rename(name)
    assert name not in _listed(world, world.etl_token, at)
    assert name in _listed(world, world.admin_token, at)
    assert new not in _listed(world, world.etl_token, world.admin.clock().now)


def _listed(world: World, token: str, at: Timestamp) -> list[str]:
    request = tables_pb2.ListTablesRequest(database="shop")
    request.at.timestamp.CopyFrom(timestamp_message(at))
    with grpc.insecure_channel(world.endpoint) as channel:
        asked = tables_pb2_grpc.TablesStub(channel).ListTables  # type: ignore[no-untyped-call]
        reply = asked(request, metadata=(("authorization", f"Bearer {token}"),), timeout=30)
    return [f"{each.database}.{each.name}" for each in reply.tables]


# --- by id -----------------------------------------------------------------------------------------------------


def test_a_large_transaction_is_committed_by_a_writer_of_the_name_of_now(world: World) -> None:
    name = world.table()
    begun = world.etl.large_transactions.begin([name])
    with world.etl.large_transactions.staging(begun.transaction_id) as staging:
        staging.table(name).put_many([{"id": 5}])
    new = world.rename(name)
    with pytest.raises(NotFound):
        world.etl.large_transactions.commit(begun.transaction_id, {0: 0})
    assert world.admin.table(new).get(5) is None
    world.admin.admin.auth.grant("etl", "writer", f"table:{new}")
    world.etl.large_transactions.commit(begun.transaction_id, {0: 0})
    assert world.admin.table(new).get(5) is not None


def test_a_job_is_seen_by_readers_of_the_name_of_now(world: World) -> None:
    name = world.table()
    world.admin.create_index(name, Index("by_id", ["id"]))
    job_id = max(each.job_id for each in world.admin.admin.jobs.list())
    assert world.etl.admin.jobs.get(job_id).job_id == job_id
    world.rename(name)
    with pytest.raises(NotFound):
        world.etl.admin.jobs.get(job_id)


# --- grants ----------------------------------------------------------------------------------------------------


def test_an_owner_leaves_places_of_a_principals_grants_to_others_and_sees_none_of_them(world: World) -> None:
    owner, given = world.admin.admin.auth.create("owner").token, 0
    assert owner is not None
    world.admin.admin.auth.grant("owner", "owner", "database:own")
    world.admin.admin.auth.create("clerk")
    world.admin.admin.auth.grant("clerk", "reader", "namespace:secret")
    with Client(world.endpoint, token=owner.text) as client:
        with pytest.raises(TooLarge, match="128 roles on what you own"):
            for number in range(GRANTS_MAX):
                seen = client.admin.auth.grant("clerk", "reader", f"table:own.t{number}")
                given += 1
        assert not seen.tokens
        assert {each.resource.partition(":")[0] for each in seen.grants} == {"table"}
        # An existing thing takes no place.
        client.admin.auth.grant("clerk", "reader", "table:own.t1")
    assert given == GRANTS_MAX // 2
    clerk = world.admin.admin.auth.grant("clerk", "reader", "database:shop")
    assert clerk.tokens
    assert len(clerk.grants) == given + 2
