"""Real nodes with certificates: they form a cluster, accept no other peer, and renew certificates without a restart."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from cortado.errors import CortadoError
from cortado.store.client import Tls
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.hello import make_hello
from support.certificates import DAYS, NOW, Certifier
from support.faces import FACES, open_client
from support.peer_calls import how_it_ended
from support.server_process import wait_until
from support.tls_nodes import client_tls, node_process, two_nodes

pytestmark = pytest.mark.process


@pytest.mark.parametrize("face", FACES)
def test_a_cluster_with_certificates_replicates_and_renews_them_without_a_restart(tmp_path: Path, face: str) -> None:
    certifier = Certifier(tmp_path / "certs")
    app = certifier.client("app")
    with two_nodes(tmp_path, certifier) as (n1, n2):
        ended, written, failures = threading.Event(), [0], []

        def load() -> None:
            with open_client(face, f"{n1.endpoint},{n2.endpoint}", timeout_s=20, tls=client_tls(app)) as client:
                while not ended.is_set():
                    try:
                        client.kv("n").put(b"k%d" % written[0], b"v")
                        written[0] += 1
                    except CortadoError as failure:
                        failures.append(failure)

        def more_is_written() -> None:
            goal = written[0] + 20
            wait_until(lambda: written[0] >= goal or bool(failures), "writes go on")

        writer = threading.Thread(target=load)
        writer.start()
        try:
            more_is_written()
            new = Certifier(tmp_path / "new")
            certifier.ca.write_bytes(certifier.ca.read_bytes() + new.ca.read_bytes())
            certifier.authority = new.authority
            for node_id in ("n1", "n2"):
                certifier.node(node_id)
                more_is_written()
            certifier.client("app")
            renewed = certifier.client("renewed")
            certifier.ca.write_bytes(new.ca.read_bytes())
            # A new connection of a client, and one of a node, with nothing but the new authority.
            with open_client(face, n1.endpoint, timeout_s=20, tls=client_tls(renewed)) as client:
                assert client.kv("n").get(b"k0") is not None
            n2.kill()
            n2.start()
            more_is_written()
        finally:
            ended.set()
            writer.join()
        assert failures == []
        left_behind = Certifier(tmp_path / "old").client("old")
        refused = Tls(ca=new.ca, cert=left_behind.cert, key=left_behind.key)
        with open_client(face, n1.endpoint, timeout_s=2, tls=refused) as client, pytest.raises(CortadoError):
            client.kv("n").get(b"k0")


def test_a_client_is_no_peer_of_a_real_node(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path / "certs")
    with_client = certifier.client("app")
    node = node_process(tmp_path, certifier.node("n1"), "n1", "--cluster-id", "cluster-a")
    try:
        node.start()
        hello = make_hello(Identity("cluster-a", "n2", "disk-2"), "h:1", (9, 9), "n1").SerializeToString()
        said, answered = how_it_ended(node.peer_address, "n1", Frame(Kind.HELLO, hello), files=with_client)
        assert "its certificate is that of client app" in said
        assert answered == []
    finally:
        node.kill()


def test_a_node_does_not_start_with_a_certificate_that_is_not_its_own_or_has_expired(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path / "certs")
    for files, said in (
        (certifier.node("n2"), "--tls-cert: is that of node n2, and not of node n1"),
        (certifier.client("app"), "--tls-cert: is that of client app, and not of node n1"),
        (certifier.node("n1", now=NOW - timedelta(days=DAYS + 1)), "--tls-cert: expired on"),
    ):
        node = node_process(tmp_path, files, "n1")
        with pytest.raises(AssertionError, match="the server ended with 2"):
            node.start()
        assert said in node.log
        assert "Traceback" not in node.log
