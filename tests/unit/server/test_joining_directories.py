"""How a directory becomes a node's: once, in an order that no crash turns into a second cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import DataDirectoryError, InvalidArgument, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import JoinResponse
from cortado.raft.records import HardState
from cortado.raft.registry import Member, Roster
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.certificates import load_authority, make_authority, make_client, make_node
from cortado.store.replica.group_range import META_GROUP
from cortado.store.server import joining, serve
from cortado.store.server.config import ServerConfig
from cortado.store.server.exits import EXIT_CONFIG, EXIT_UNAVAILABLE, StartRefused
from cortado.store.server.joining import join_cluster, joined_members, open_stores
from cortado.store.server.stores import Stores
from support.nodes import run

ADDRESSES = Addresses("127.0.0.1:3", "127.0.0.1:2")


def config(tmp_path: Path, **more: Any) -> ServerConfig:
    return ServerConfig(data_dir=tmp_path / "data", map_size=16 << 20, **more)


def joins(tmp_path: Path, **more: Any) -> ServerConfig:
    return config(tmp_path, node_id="n2", join=("127.0.0.1:1",), **more)


def answering(monkeypatch: pytest.MonkeyPatch, answer: JoinResponse | Exception) -> list[Any]:
    asked: list[Any] = []

    async def join(endpoints: Any, identity: Any, addresses: Addresses, **_: Any) -> JoinResponse:
        asked.append((endpoints, identity.node_id, addresses))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(joining, "join", join)
    return asked


def joined(settings: ServerConfig, stores: Stores) -> None:
    run(lambda: join_cluster(settings, stores, ADDRESSES, None))


def test_a_first_start_without_join_begins_a_cluster(tmp_path: Path) -> None:
    stores = open_stores(config(tmp_path, node_id="n1", cluster_id="mine"))
    assert (stores.engine.identity.cluster_id, stores.engine.identity.node_id) == ("mine", "n1")
    assert stores.engine.identity.storage_id
    assert joined_members(stores.engine) is None
    stores.close()


def test_a_first_start_with_join_belongs_to_nobody_until_it_was_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = open_stores(joins(tmp_path))
    first = stores.engine.identity
    assert first.cluster_id == ""
    asked = answering(monkeypatch, JoinResponse(cluster_id="theirs"))
    joined(joins(tmp_path), stores)
    assert asked == [(("127.0.0.1:1",), "n2", ADDRESSES)]
    assert joined_members(stores.engine) is not None
    stores.close()
    stores = open_stores(joins(tmp_path))
    assert stores.engine.identity.cluster_id == "theirs"
    assert stores.engine.identity.storage_id == first.storage_id
    joined(joins(tmp_path), stores)
    assert len(asked) == 1, "once is enough"
    stores.close()


def test_a_crash_while_joining_never_leaves_what_could_begin_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the cluster's id and without the mark, an empty node would begin a group of one under that id."""
    stores = open_stores(joins(tmp_path))
    answering(monkeypatch, JoinResponse(cluster_id="theirs"))

    def crash(_: LmdbEngine, __: str) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as crashing:
        crashing.setattr(LmdbEngine, "join_cluster", crash)
        with pytest.raises(OSError, match="the power went"):
            joined(joins(tmp_path), stores)
    assert joined_members(stores.engine) is not None
    joined(joins(tmp_path), stores)
    assert stores.engine.identity.cluster_id == "theirs"
    stores.close()


@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [
        (Unavailable("no leader"), EXIT_UNAVAILABLE),
        (PeerRefused("another cluster"), EXIT_CONFIG),
        (InvalidArgument("node id", "announce it first"), EXIT_CONFIG),
        (JoinResponse(cluster_id="theirs"), EXIT_CONFIG),
    ],
    ids=["unavailable", "refused", "not announced", "another cluster than the configured one"],
)
def test_a_join_that_fails_ends_the_start_with_a_code_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: JoinResponse | Exception, exit_code: int
) -> None:
    settings = joins(tmp_path, cluster_id="mine")
    stores = open_stores(settings)
    answering(monkeypatch, answer)
    with pytest.raises(StartRefused) as refused:
        joined(settings, stores)
    assert refused.value.exit_code == exit_code
    assert stores.engine.identity.cluster_id == ""
    assert joined_members(stores.engine) is None
    stores.close()


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="node-id: must be given with --join"):
        open_stores(config(tmp_path, join=("127.0.0.1:1",)))
    open_stores(config(tmp_path, node_id="n1")).close()
    with pytest.raises(InvalidArgument, match=r"node-id: the data directory is that of node n1 \(got n2\)"):
        open_stores(config(tmp_path, node_id="n2"))
    with pytest.raises(InvalidArgument, match="cluster-id: the data directory belongs to cluster"):
        open_stores(config(tmp_path, cluster_id="other"))
    stores = open_stores(config(tmp_path))
    with pytest.raises(DataDirectoryError, match="in use"):
        open_stores(config(tmp_path))
    stores.close()


def test_a_wrong_certificate_ends_the_start_before_a_directory_is_made(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    made = make_authority("test", 1, now)
    authority = load_authority(made.certificate, made.key, certificate_name="ca", key_name="ca key")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(made.certificate)
    expired = make_node(authority, "n1", ["localhost"], 1, now - timedelta(days=3))
    for name, pair, problem in (
        ("another", make_node(authority, "n2", ["localhost"], 1, now), "is that of node n2, and not of node n1"),
        ("client", make_client(authority, "app", 1, now), "is that of client app, and not of node n1"),
        ("expired", expired, "expired on"),
    ):
        cert, key = tmp_path / f"{name}.crt", tmp_path / f"{name}.key"
        cert.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        settings = config(tmp_path, node_id="n1", listen="127.0.0.1:0", tls_cert=cert, tls_key=key, tls_ca=ca)
        with pytest.raises(InvalidArgument, match=rf"{name}\.crt: {problem}"):
            serve(settings)
        assert not (tmp_path / "data").exists()


def test_a_directory_that_began_a_cluster_does_not_join_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, JoinResponse(cluster_id="theirs"))
    stores = open_stores(config(tmp_path, cluster_id="mine"))
    with pytest.raises(StartRefused) as refused:
        joined(config(tmp_path, join=("127.0.0.1:1",)), stores)
    assert refused.value.exit_code == EXIT_CONFIG
    assert "began a cluster of its own, mine, and joins no other" in refused.value.error.message()
    joined(config(tmp_path, join=("127.0.0.1:1", "127.0.0.1:2")), stores)  # A list that all nodes have.
    n1, n2 = Member("n1", "127.0.0.1:2", "disk"), Member("n2", "127.0.0.1:1", "another")
    stores = has(stores, n1)
    with pytest.raises(StartRefused):
        joined(config(tmp_path, join=("127.0.0.1:1",)), stores)
    stores = has(stores, n1, n2)
    joined(config(tmp_path, join=("127.0.0.1:1",)), stores)
    assert asked == []
    stores.close()


def has(stores: Stores, *members: Member) -> Stores:
    """Make these the members of the directory's group."""
    stores.log_files.append([HardState(3, "", 9, 2, Roster.of(voters=members)).log_record(META_GROUP.group_id)])
    stores.close()
    return Stores.beside(LmdbEngine.open(stores.engine.path, new_identity=lambda: pytest.fail("it is made")))


def test_a_drawn_name_is_not_left_in_a_directory_whose_certificate_has_another(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(InvalidArgument, match="node-id: must be given with tls-cert, at the first start"):
        open_stores(config(tmp_path, tls_cert=file, tls_key=file, tls_ca=file))
    open_stores(config(tmp_path, node_id="n1", tls_cert=file, tls_key=file, tls_ca=file)).close()
