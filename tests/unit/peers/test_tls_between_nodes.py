"""With certificates, a node is a peer for its own certificate alone; renewing needs no restart and loses nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from cortado.errors import PeerRefused, Unavailable
from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.credentials import Certificates, TlsFiles
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.hello import make_hello
from cortado.store.peers.join import join
from support.certificates import DAYS, NOW, Certifier
from support.nodes import run, until
from support.peer_calls import unchecked
from support.peers import PeerProcess, calling, connected, how_it_ends, identity_of_node, members, running_peer

AT = Addresses("h:2", "h:1")


@pytest.fixture
def certifier(tmp_path: Path) -> Certifier:
    return Certifier(tmp_path / "certs")


def test_nodes_with_certificates_are_peers(certifier: Certifier) -> None:
    async def scenario() -> None:
        async with (
            running_peer("n1", certificates=certifier.certificates("n1")) as n1,
            running_peer("N2", certificates=certifier.certificates("N2")) as n2,
        ):
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            n1.transport.send(1, [Message("N2", b"a")])
            n2.transport.send(1, [Message("n1", b"b")])
            await until(lambda: n1.node.bodies() == [b"b"] and n2.node.bodies() == [b"a"], "both heard")

    run(scenario)


async def refused_by(n1: PeerProcess, certificates: Certificates, *, hello_of: str) -> PeerRefused | Unavailable:
    """Return n1's answer to a stream with these certificates, which claims to be ``hello_of``."""
    hello = make_hello(identity_of_node(hello_of), "h:1", (9, 9), "n1")
    async with calling(n1, certificates) as connection:
        found = await how_it_ends(connection, Frame(Kind.HELLO, hello.SerializeToString()))
        assert isinstance(found, (PeerRefused, Unavailable))
        return found


@pytest.mark.parametrize(
    ("whose", "said"),
    [
        ("client", "its certificate is that of client app: a peer needs a node's (cortado:node:<node id>)"),
        ("another node", "it says to be node n2, but its certificate is that of node n3"),
        ("foreign", ""),
        ("expired", ""),
    ],
)
def test_nobody_else_opens_a_stream_as_a_peer(certifier: Certifier, tmp_path: Path, whose: str, said: str) -> None:
    other = Certifier(tmp_path / "other")
    files = {
        "client": lambda: certifier.client("app"),
        "another node": lambda: certifier.node("n3"),
        # It trusts the right authority, and was signed by another.
        "foreign": lambda: TlsFiles(other.node("n2").cert, other.node("n2").key, certifier.ca),
        "expired": lambda: certifier.node("n2", now=NOW - timedelta(days=DAYS + 1)),
    }[whose]()

    async def scenario() -> None:
        async with running_peer("n1", certificates=certifier.certificates("n1")) as n1:
            n1.transport.configure(Roster.of((n1.member, Member("n2", "127.0.0.1:1", "storage-n2"))))
            refusal = await refused_by(n1, unchecked(files), hello_of="n2")
            if said:
                assert refusal.problem == said
            else:
                # The handshake ended it.
                assert isinstance(refusal, Unavailable)
            assert n1.node.received == []
            assert not n1.is_connected_to("n2")

    run(scenario)


@pytest.mark.parametrize(
    ("whose", "said"),
    [
        ("another node", "its certificate is not that of node n2"),
        (
            "client",
            "its certificate does not come from an authority that this node trusts: unsuitable certificate purpose",
        ),
        (
            "foreign",
            "its certificate does not come from an authority that this node trusts: unable to get local issuer "
            "certificate",
        ),
        ("expired", "its certificate has expired"),
        ("none", "it does not speak TLS"),
    ],
)
def test_a_node_that_dials_takes_nobody_else_for_its_peer(
    certifier: Certifier, tmp_path: Path, whose: str, said: str
) -> None:
    other = Certifier(tmp_path / "other")
    certificates = {
        "another node": lambda: unchecked(certifier.node("n3")),
        "client": lambda: unchecked(certifier.client("app")),
        "foreign": lambda: unchecked(TlsFiles(other.node("n2").cert, other.node("n2").key, certifier.ca)),
        "expired": lambda: unchecked(certifier.node("n2", now=NOW - timedelta(days=DAYS + 1))),
        "none": lambda: None,
    }[whose]()

    async def scenario() -> None:
        async with (
            running_peer("n1", certificates=certifier.certificates("n1")) as n1,
            running_peer("n2", certificates=certificates) as n2,
        ):
            n1.transport.configure(members(n1, n2))
            await until(lambda: n1.problem_with("n2") != "", "n1 says why")
            assert n1.problem_with("n2") == f"{n2.address}: {said}"
            assert n2.node.received == []

    run(scenario)


def test_a_node_without_tls_is_told_so_at_either_end(certifier: Certifier) -> None:
    async def scenario() -> None:
        async with (
            running_peer("n1") as n1,
            running_peer("n2", certificates=certifier.certificates("n2")) as n2,
        ):
            n1.transport.configure(members(n1, n2))
            said = "it closed the connection: it stops, or wants TLS"
            await until(lambda: n1.problem_with("n2") == f"{n2.address}: {said}", "n1 says why")
            assert n2.node.received == []
            with pytest.raises(Unavailable, match=said):
                await join([n2.address], Identity("", "n3", "disk-3"), AT, timeout_s=1)

    run(scenario)


def test_a_new_node_joins_with_its_own_certificate_only(certifier: Certifier) -> None:
    async def scenario() -> None:
        async with running_peer("n1", certificates=certifier.certificates("n1")) as n1:
            new = Identity("", "n3", "disk-3")
            answer = await join([n1.address], new, AT, certificates=certifier.certificates("n3"), timeout_s=20)
            assert answer.cluster_id == "cluster-a"
            assert n1.node.bound == [Member("n3", "h:1", "disk-3", "h:2")]
            for wrong in (certifier.node("n2"), certifier.client("app")):
                with pytest.raises(PeerRefused, match="certificate is that of"):
                    await join([n1.address], new, AT, certificates=unchecked(wrong), timeout_s=20)
            assert len(n1.node.bound) == 1

    run(scenario)


def test_certificates_are_renewed_under_traffic(certifier: Certifier, tmp_path: Path) -> None:
    """A new authority, too: both are trusted for a while, then everyone has a certificate of the new one."""

    async def scenario() -> None:
        async with (
            running_peer("n1", certificates=certifier.certificates("n1")) as n1,
            running_peer("n2", certificates=certifier.certificates("n2")) as n2,
        ):
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            sent = 0

            async def traffic() -> None:
                nonlocal sent
                body = b"%d" % (sent := sent + 1)

                def is_heard() -> bool:
                    # If one stream takes the place of another, a message may be lost: Raft sends again.
                    n1.transport.send(1, [Message("n2", body)])
                    return body in n2.node.bodies()

                await until(is_heard, "it is heard")

            await traffic()
            new = Certifier(tmp_path / "new")
            certifier.ca.write_bytes(certifier.ca.read_bytes() + new.ca.read_bytes())
            certifier.authority = new.authority
            for node_id in ("n1", "n2"):
                certifier.node(node_id)
                await traffic()
            certifier.ca.write_bytes(new.ca.read_bytes())
            await traffic()
            # The stream that stands is that of before; a new one shows the new certificates on both sides.
            old = n1.transport.link_to("n2")
            assert old is not None
            old.close(Unavailable("cut by the test"))
            await until(lambda: n1.transport.link_to("n2") not in (None, old), "a new stream")
            await connected(n1, n2)
            await traffic()
            # A peer with a certificate of the old authority is refused now.
            left_behind = Certifier(tmp_path / "old")
            files = TlsFiles(left_behind.node("n2").cert, left_behind.node("n2").key, new.ca)
            assert isinstance(await refused_by(n1, unchecked(files), hello_of="n2"), Unavailable)

    run(scenario)
