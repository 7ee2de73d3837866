"""Roles over a real port: callers are known by tokens, denials are said and audited, and streams end."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from cortado.errors import (
    AlreadyExists,
    CortadoError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    WriteConflict,
)
from cortado.proto.v1 import calls_pb2, common_pb2, kv_pb2, schemas_pb2, tables_pb2, transactions_pb2
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.auth.current import Credential
from cortado.store.auth.roles import Demand, Permission, Resource
from cortado.store.client import Client, Index
from cortado.store.client.authorization import ON_BEHALF
from cortado.store.client.blocking.drive import run
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import namespace_key, namespace_range, row_key, table_range
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.server.convert import timestamp_message
from cortado.store.transactions.footprint import Footprint, TableRead
from cortado.store.wire.rpc_errors import from_status
from support.grpc_errors import from_rpc_error
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node
from support.server_process import wait_until

KEY, VALUE = b"a secret key", b"a secret value"
ENDED_S = 5.0


@dataclass
class World:
    served: Served
    audit: Path
    admin: Client
    root: str
    """The admin's token."""
    granting: Client = field(init=False)
    """An owner's, which grants."""

    def client(self, name: str, *grants: tuple[str, str]) -> Client:
        issued = self.admin.admin.auth.create(name)
        assert issued.token is not None
        for role, resource in grants:
            self.admin.admin.auth.grant(name, role, resource)
        return Client(self.served.endpoint, token=issued.token.text)

    def lines(self) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in (self.audit / "audit.log").read_text().splitlines()]
        return [each for each in found if "lines_missing" not in each]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    audit = tmp_path_factory.mktemp("audit")
    with served_node(MemoryEngine(), audit) as served:
        with Client(served.endpoint) as anybody:
            anybody.kv("carts").put(KEY, VALUE)
            assert anybody.admin.auth.who_am_i().principal is None
            token = anybody.admin.auth.enable("root").token
        assert token is not None
        with Client(served.endpoint, token=token.text) as admin:
            world = World(served, audit, admin, token.text)
            with world.client("granting", ("owner", "database:own")) as world.granting:
                yield world


def test_who_shows_nothing_is_refused_and_who_is_known_is_told_its_name(world: World) -> None:
    with Client(world.served.endpoint) as anybody, pytest.raises(Unauthenticated):
        anybody.kv("carts").get(KEY)
    assert world.admin.kv("carts").get(KEY) is not None
    known = world.admin.admin.auth.who_am_i()
    assert known.principal is not None
    assert known.principal.name == "root"


def test_a_denial_does_not_tell_whether_there_is_such_a_table(world: World) -> None:
    world.admin.create_database("shop")
    world.admin.schemas.register(
        "shop.orders", '{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}'
    )
    world.admin.create_table("shop.orders", key=["id"])
    with world.client("stranger") as stranger:
        for name in ("shop.orders", "shop.nothing", "no.where"):
            with pytest.raises(PermissionDenied) as denied:
                stranger.table(name).get(1)
            assert denied.value.message() == (f"principal stranger may not do this: reader of table:{name} is needed")


def test_readers_of_a_table_read_the_schemas_of_its_subject_whatever_that_is_called(world: World) -> None:
    schema = '{"type": "record", "name": "S", "fields": [{"name": "id", "type": "long"}]}'
    world.admin.create_database("follows")
    for subject, table in (("follows.first", "second"), ("a-topic-value", "third")):
        world.admin.schemas.register(subject, schema)
        world.admin.create_table(f"follows.{table}", key=["id"], subject=subject)
        world.admin.table(f"follows.{table}").put({"id": 1})
        name = f"reader-{table}"
        with world.client(name, ("reader", f"table:follows.{table}")) as reader:
            assert [each.value for each in reader.table(f"follows.{table}").scan()] == [{"id": 1}]
            assert reader.schemas.get(subject).subject == subject
            assert [each.version for each in reader.schemas.versions(subject)] == [1]
            with pytest.raises(PermissionDenied):
                reader.schemas.register(subject, schema)
        with world.client(f"other-{table}", ("reader", "table:follows.nothing")) as other:
            for unknown in (subject, "no-such-subject"):
                with pytest.raises(PermissionDenied):
                    other.schemas.get(unknown)
                with pytest.raises(PermissionDenied):
                    other.schemas.versions(unknown)


def test_a_list_of_subjects_names_no_table_that_lists_of_tables_hide(world: World) -> None:
    schema = '{"type": "record", "name": "S", "fields": [{"name": "id", "type": "long"}]}'
    world.admin.create_database("shared")
    world.admin.schemas.register("shared.open", schema)
    for table in ("open", "hidden"):
        world.admin.create_table(f"shared.{table}", key=["id"], subject="shared.open")
    with world.client("of-one", ("reader", "table:shared.open")) as reader:
        (found,) = reader.schemas.subjects()
        assert (found.subject, list(found.tables)) == ("shared.open", ["shared.open"])
        assert [each.full_name for each in reader.tables()] == ["shared.open"]
    (seen,) = (each for each in world.admin.schemas.subjects() if each.subject == "shared.open")
    assert sorted(seen.tables) == ["shared.hidden", "shared.open"]


def test_owners_define_and_give_rights_on_what_they_own(world: World) -> None:
    with world.client("owner", ("owner", "database:own")) as owner, world.client("guest") as guest:
        owner.create_database("own")
        schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
        owner.schemas.register("own.rows", schema)
        owner.create_table("own.rows", key=["id"])
        owner.table("own.rows").put({"id": 1})
        owner.admin.auth.grant("guest", "reader", "table:own.rows")
        assert guest.table("own.rows").get(1) is not None
        with pytest.raises(PermissionDenied):
            guest.table("own.rows").put({"id": 2})
        for role, resource in (("reader", "cluster"), ("operator", "cluster"), ("reader", "database:other")):
            with pytest.raises(PermissionDenied):
                owner.admin.auth.grant("guest", role, resource)
        with pytest.raises(PermissionDenied):
            owner.drop_database("shop")
        with pytest.raises(NotFound):
            owner.admin.auth.grant("nobody-of-that-name", "reader", "table:own.rows")


NO_RESOURCES = ["table:NAME", "table:", "table:.", "table:a.", "table:.b", "table:a.b.c", "table:\u00e4.b"]
NO_RESOURCES += [
    "database:",
    "database:a.b",
    "namespace:",
    "namespace:a/b",
    "x:y",
    ":",
    "cluster:",
    "own",
    "",
    "x" * 2_000,
]


@pytest.mark.parametrize("resource", NO_RESOURCES)
@pytest.mark.parametrize("role", ["reader", "writer", "owner"])
def test_a_grant_on_what_is_no_resource_is_refused_by_field(world: World, role: str, resource: str) -> None:
    for given in (world.admin, world.granting):
        for change in (given.admin.auth.grant, given.admin.auth.revoke_grant):
            with pytest.raises((InvalidArgument, PermissionDenied)) as refused:
                change("granting", role, resource)
            if given is world.admin or ":" in resource:
                assert isinstance(refused.value, InvalidArgument)
                assert refused.value.field == "resource"


def test_a_write_is_refused_where_it_is_appended_whatever_was_decided_before(world: World) -> None:
    """Between the decision where it is served and its turn in the log a right may go."""
    replica = world.served.node.meta
    demands = (Demand(Permission.WRITE, Resource("namespace:carts")),)
    world.admin.admin.auth.create("racing")

    async def append(token: str) -> None:
        CALLER.set(Caller(Credential(token), demands))
        await replica.write(lambda _reader, _ts: Evaluation(Mutations(), None))

    issued = world.admin.admin.auth.rotate("racing", overlap_ms=0).token
    assert issued is not None
    with pytest.raises(PermissionDenied):
        world.served.call(append(issued.text))
    world.admin.admin.auth.grant("racing", "writer", "namespace:carts")
    world.served.call(append(issued.text))
    world.admin.admin.auth.revoke("racing")
    with pytest.raises(Unauthenticated):
        world.served.call(append(issued.text))


def test_a_transaction_rests_on_what_it_may_read_alone(world: World) -> None:
    schema = (
        '{"type": "record", "name": "T", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}]}'
    )
    world.admin.create_database("books")
    for name in ("open", "secret"):
        world.admin.schemas.register(f"books.{name}", schema)
        world.admin.create_table(f"books.{name}", key=["id"], indexes=[Index("by_n", ["n"])])
        world.admin.table(f"books.{name}").put({"id": 1, "n": 1})
    world.admin.kv("secrets").put(KEY, VALUE)
    may = ("writer", "table:books.open"), ("reader", "namespace:carts")
    with world.client("reckoner", *may) as reckoner:
        for _ in range(2):
            with reckoner.transaction(isolation="serializable") as transaction:
                table, pairs = transaction.table("books.open"), transaction.kv("carts")
                assert table.get(1) is not None
                assert pairs.get(KEY) is not None
                assert len(list(pairs.scan())) + len(list(pairs.scan(prefix=b"a", limit=1))) == 2
                assert len(list(table.scan(prefix=1))) == len(list(table.scan())) == 1
                assert len(list(table.scan(index="by_n", prefix=1))) == 1
                table.put({"id": 1, "n": 1})
        start = reckoner.now()
        world.admin.table("books.secret").put({"id": 1, "n": 2})
        secret = world.admin.table("books.secret").descriptor.table_id
        own = world.admin.table("books.open").descriptor.table_id
        key, everything = row_key(secret, [KeyPart("id", KeyType.INT64)], [1]), table_range(secret)
        mine = TableRead("books", "open", own)
        for forged, refusal in (
            (Footprint([key], (), [TableRead("books", "secret", secret)]), PermissionDenied),
            (Footprint([key], (), [TableRead("books", "open", secret)]), WriteConflict),
            (Footprint([key], (), [mine]), InvalidArgument),
            (Footprint((), [everything], [mine]), InvalidArgument),
            (
                Footprint((), [(table_range(own)[0], everything[1])], [TableRead("books", "open", own)]),
                PermissionDenied,
            ),
            (Footprint((), [namespace_range("secrets")]), PermissionDenied),
            (Footprint((), [(namespace_range("carts")[0], namespace_range("secrets")[1])]), PermissionDenied),
            (Footprint([namespace_key("secrets")]), PermissionDenied),
        ):
            with pytest.raises(refusal) as refused:
                _commit(reckoner, start, forged)
            assert "secret key" not in refused.value.message()


def _commit(client: Client, start: Timestamp, footprint: Footprint) -> None:
    request = transactions_pb2.CommitRequest(start=timestamp_message(start), isolation="ISOLATION_SERIALIZABLE")
    absent = common_pb2.Key(parts=[common_pb2.Value(int64=9)])
    request.operations.add(delete=common_pb2.DocumentDelete(database="books", table="open", key=absent))
    request.footprints.append(footprint.encode())
    connection = client._core._connection
    run(connection.write(connection.stubs.transactions.Commit, request, timeout_s=ENDED_S))


def test_lists_show_the_names_alone_on_which_somebody_has_a_role(world: World) -> None:
    schema = '{"type": "record", "name": "N", "fields": [{"name": "id", "type": "long"}]}'
    for name in ("seen.hidden", "seen.shown", "unseen.hidden"):
        with suppress(AlreadyExists):
            world.admin.create_database(name.partition(".")[0])
        version = world.admin.schemas.register(name, schema)
        world.admin.create_table(name, key=["id"])
    world.admin.schemas.register("topic-value", schema)
    for name in ("na", "nb", "nc", "nd"):
        world.admin.kv(name).put(KEY, VALUE)
    grants = ("reader", "table:seen.shown"), ("writer", "namespace:nb"), ("reader", "namespace:nd")
    with world.client("looking", *grants, ("owner", "namespace:nn"), ("reader", "table:gone.x")) as looking:
        assert looking.databases() == ["seen"]
        assert [each.full_name for each in looking.tables()] == ["seen.shown"]
        assert [each.full_name for each in looking.tables("seen")] == ["seen.shown"]
        assert [each.full_name for each in looking.admin.sizes.tables()] == ["seen.shown"]
        assert looking.admin.sizes.databases() == []
        assert looking.admin.sizes.table("seen.shown").rows.count == 0
        for hidden in ("seen.hidden", "seen.absent"):
            with pytest.raises(PermissionDenied):
                looking.admin.sizes.table(hidden)
        assert looking.namespaces() == ["nb", "nd"]
        assert [each.subject for each in looking.schemas.subjects()] == ["seen.shown"]
        assert _subjects_of(looking, version.schema_id) == ["seen.shown"]
        for name in ("unseen", "absent"):
            with pytest.raises(PermissionDenied) as denied:
                looking.tables(name)
            assert denied.value.message() == f"principal looking may not do this: any role of database:{name} is needed"
        # A page that ends at a name that is hidden would show it in its token.
        request = kv_pb2.ListNamespacesRequest(page_size=1)
        names: list[str] = []
        while not names or request.page_token:
            reply = _call(looking, "kv", "ListNamespaces", request)
            names += reply.namespaces
            request.page_token = reply.next_page_token
            resume = request.page_token[37:-8]
            assert not any(name in resume for name in (b"na", b"nc"))
        assert names == ["nb", "nd"]
        tables = _call(looking, "tables", "ListTables", tables_pb2.ListTablesRequest(page_size=1))
        assert (len(tables.tables), tables.next_page_token) == (1, b"")
        subjects = _call(looking, "schemas", "ListSubjects", schemas_pb2.ListSubjectsRequest(page_size=1))
        assert (len(subjects.subjects), subjects.next_page_token) == (1, b"")
        with pytest.raises(PermissionDenied):
            looking.dropped()
    with world.client("operating", ("operator", "cluster")) as operating:
        assert {"seen", "unseen"} <= {*operating.databases()}
        assert {"na", "nb", "nc", "nd"} <= {*operating.namespaces()}
        assert "topic-value" in [each.subject for each in operating.schemas.subjects()]
    with world.client("known") as known:
        assert known.databases() == known.namespaces() == [*known.tables()] == [*known.schemas.subjects()] == []


def _subjects_of(client: Client, schema_id: int) -> list[str]:
    request = schemas_pb2.ListVersionsRequest(schema_id=schema_id, omit_schemas=True)
    return [each.subject for each in _call(client, "schemas", "ListVersions", request).versions]


def _call(client: Client, service: str, method: str, request: Any) -> Any:
    connection = client._core._connection
    return run(connection.call(getattr(getattr(connection.stubs, service), method), request, timeout_s=ENDED_S))


def test_a_right_that_is_taken_away_ends_a_watch(world: World) -> None:
    with world.client("watcher", ("reader", "namespace:carts")) as watcher:
        watch = watcher.kv("carts").watch()
        began, ended = threading.Event(), []

        def follow() -> None:
            try:
                for _ in watch:
                    began.set()
            except CortadoError as error:
                ended.append(error)

        thread = threading.Thread(target=follow)
        thread.start()
        assert began.wait(ENDED_S)
        world.admin.admin.auth.revoke_grant("watcher", "reader", "namespace:carts")
        thread.join(ENDED_S)
        assert [type(each) for each in ended] == [PermissionDenied]


def test_a_right_that_is_taken_away_ends_a_bulk_load(world: World) -> None:
    schema = '{"type": "record", "name": "L", "fields": [{"name": "id", "type": "long"}]}'
    world.admin.create_database("loads")
    world.admin.schemas.register("loads.rows", schema)
    world.admin.create_table("loads.rows", key=["id"])
    with world.client("loader", ("writer", "table:loads.rows")) as loader:

        def rows() -> Iterator[dict[str, Any]]:
            for number in range(100_000):
                if number == 5_000:
                    world.admin.admin.auth.revoke("loader")
                yield {"id": number}

        with pytest.raises((Unauthenticated, PermissionDenied)):
            loader.table("loads.rows").put_many(rows(), chunk_rows=500)
        count = sum(1 for _ in world.admin.table("loads.rows").scan())
        assert count < 100_000


def test_a_rotated_token_is_taken_from_its_file(world: World, tmp_path: Path) -> None:
    file = tmp_path / "app.token"
    first = world.admin.admin.auth.create("rotated")
    world.admin.admin.auth.grant("rotated", "reader", "namespace:carts")
    assert first.token is not None
    file.write_text(first.token.text + "\n")
    with Client(world.served.endpoint, token=file) as client:
        assert client.kv("carts").get(KEY) is not None
        second = world.admin.admin.auth.rotate("rotated", overlap_ms=0)
        assert second.token is not None
        file.write_text(second.token.text + "\n")

        def is_let_in() -> bool:
            try:
                return client.kv("carts").get(KEY) is not None
            except Unauthenticated:
                return False

        wait_until(is_let_in, "the new token", ENDED_S)
        principal = client.admin.auth.who_am_i().principal
        assert principal is not None
        assert [each.token_id for each in principal.tokens] == [second.token.token_id]


def test_calls_that_share_a_stream_are_their_own_callers(world: World) -> None:
    """A call with a principal of its own belongs to that one alone, on any stream."""
    request = kv_pb2.KvGetRequest(namespace="carts", key=KEY).SerializeToString()
    names = {1: "", 2: "Bearer ", 3: "Bearer ctd_0000000000000000_" + "A" * 43, 4: f"Bearer {world.root}", 5: "x"}
    batch = calls_pb2.CallBatch(
        calls=[
            calls_pb2.Call(id=each, method="cortado.v1.KeyValue/Get", request=request, authorization=header)
            for each, header in names.items()
        ]
    )
    with grpc.insecure_channel(world.served.endpoint) as channel:
        exchange = channel.stream_stream(
            "/cortado.v1.Calls/Exchange", calls_pb2.CallBatch.SerializeToString, calls_pb2.ReplyBatch.FromString
        )
        replies = {
            reply.id: reply
            for message in exchange(iter([batch]), metadata=(("authorization", f"Bearer {world.root}"),))
            for reply in message.replies
        }
    outcomes = {each: from_status(reply.status).reason if reply.status else "OK" for each, reply in replies.items()}
    assert outcomes == {1: "OK", 2: "UNAUTHENTICATED", 3: "UNAUTHENTICATED", 4: "OK", 5: "UNAUTHENTICATED"}


def test_who_calls_on_behalf_of_nobody_is_nobody(world: World) -> None:
    token = ON_BEHALF.set("Bearer ")
    try:
        with pytest.raises(Unauthenticated):
            world.admin.kv("carts").get(KEY)
    finally:
        ON_BEHALF.reset(token)


def test_a_raw_call_carries_its_token_in_its_metadata(world: World) -> None:
    with grpc.insecure_channel(world.served.endpoint) as channel:
        get = channel.unary_unary(
            "/cortado.v1.KeyValue/Get", kv_pb2.KvGetRequest.SerializeToString, kv_pb2.KvGetResponse.FromString
        )
        request = kv_pb2.KvGetRequest(namespace="carts", key=KEY)
        for scheme in ("Bearer", "bearer", "BEARER "):
            assert get(request, metadata=(("authorization", f"{scheme} {world.root}"),)).pair.value == VALUE
        for header, problem in (
            (f"Digest {world.root}", "scheme of the header authorization is not known"),
            (world.root, "scheme of the header authorization is not known"),
            ("Bearer a.web.token", "what stands behind Bearer is no token"),
            (f"Bearer {world.root[:-1]}-", "the token is not known"),
            ("Bearer", "there is neither a token"),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                get(request, metadata=(("authorization", header),))
            error = from_rpc_error(refused.value)
            assert isinstance(error, Unauthenticated) and problem in error.problem, header


def test_two_tokens_in_one_call_are_none(world: World) -> None:
    other = world.admin.admin.auth.create("twofold").token
    assert other is not None
    tokens = [("authorization", f"Bearer {each}") for each in (other.text, world.root)]
    with grpc.insecure_channel(world.served.endpoint) as channel:
        who_am_i = channel.unary_unary("/cortado.v1.Auth/WhoAmI")
        who_am_i(b"", metadata=tokens[:1])
        for metadata in (tokens, tokens[::-1], [("authorization", ""), tokens[1]]):
            with pytest.raises(grpc.RpcError) as refused:
                who_am_i(b"", metadata=metadata)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", ["KeyValue/Get", "KeyValue/Scan", "Documents/Bulk", "Cluster/Status"])
def test_who_is_nobody_is_refused_before_anything_is_received(world: World, method: str) -> None:
    silent = threading.Event()
    with grpc.insecure_channel(world.served.endpoint) as channel:
        call = channel.stream_stream(f"/cortado.v1.{method}")(iter(silent.wait, True), timeout=ENDED_S)
        try:
            with pytest.raises(grpc.RpcError) as refused:
                next(call)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        finally:
            silent.set()
            call.cancel()


def test_loads_that_have_not_said_what_for_are_in_nobodys_way(world: World) -> None:
    with (
        world.client("loader", ("owner", "database:silence")) as loader,
        grpc.insecure_channel(world.served.endpoint) as channel,
    ):
        loader.create_database("silence")
        schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
        loader.schemas.register("silence.rows", schema)
        loader.create_table("silence.rows", key=["id"])
        silent = threading.Event()
        bulk = channel.stream_stream("/cortado.v1.Documents/Bulk")
        stranger = world.admin.admin.auth.create("silent").token
        assert stranger is not None
        shown = (("authorization", f"Bearer {stranger.text}"),)
        calls = [bulk(iter(silent.wait, True), metadata=shown) for _ in range(80)]
        try:
            assert loader.table("silence.rows").put_many([{"id": 1}]).written == 1
        finally:
            silent.set()
            for call in calls:
                call.cancel()


def test_a_token_never_goes_unencrypted_over_a_network(world: World) -> None:
    with Client("10.255.255.1:7621", token=world.root) as client, pytest.raises(InvalidArgument, match="unencrypted"):
        client.kv("carts").get(KEY)
    with pytest.raises(InvalidArgument) as refused:
        Client(world.served.endpoint, token="my-secret")
    assert "my-secret" not in refused.value.message()
    assert world.root not in repr(world.admin)


def test_denials_and_changes_are_audited_and_no_value_or_token_is(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with world.client("audited", ("reader", "namespace:carts")) as audited:
        audited.kv("carts").get(KEY)
        with pytest.raises(PermissionDenied):
            audited.kv("carts").put(KEY, VALUE)
        token = audited._core._connection._channels._authorization.header().removeprefix("Bearer ")

    def told() -> list[tuple[str, ...]]:
        return [
            (each["principal"], each["method"], each["about"], each["outcome"])
            for each in world.lines()
            if "audited" in (each["principal"], *each["about"].split())
        ]

    wait_until(lambda: len(told()) == 3, "three lines", ENDED_S)
    assert told() == [
        ("root", "Auth/CreatePrincipal", "audited", "OK"),
        ("root", "Auth/Grant", "audited reader", "OK"),
        ("audited", "KeyValue/Put", "", "PERMISSION_DENIED"),
    ]
    written = (world.audit / "audit.log").read_text() + caplog.text
    for secret in (KEY, VALUE, token.encode(), world.root.encode()):
        assert secret.decode() not in written


def test_tokens_are_stored_as_digests_alone(world: World) -> None:
    def stored() -> bytes:
        with world.served.node.process.engine.read() as txn:
            return b"".join(key + value() for space in Space for key, value in txn.walk(space, b""))

    wait_until(lambda: b"principal" in stored(), "what was committed is applied", ENDED_S)
    assert world.root.encode() not in stored()
    assert world.root[-43:].encode() not in stored()


def test_roles_that_are_off_let_everybody_in(tmp_path: Path) -> None:
    with served_node(MemoryEngine(), tmp_path) as served, Client(served.endpoint) as anybody:
        token = anybody.admin.auth.enable("root").token
        assert token is not None
        with Client(served.endpoint, token=token.text) as admin:
            assert not admin.admin.auth.disable().enabled
        anybody.kv("carts").put(KEY, VALUE)
