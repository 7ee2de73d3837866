"""``cortado doctor`` on nodes as they are: none, one, or three with a dead one and a wrong clock; on a full disk and
with an expired certificate. Its output has no secrets."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import kv_pb2, kv_pb2_grpc
from cortado.store.cli.app import run
from cortado.store.cli.diagnosing import NOT_CHECKED
from cortado.store.client import Client
from cortado.store.peers.credentials import TlsFiles
from support.certificates import DAYS, NOW, Certifier
from support.cluster import Cluster
from support.commands import check_command
from support.server_process import ServerProcess, running_server, wait_until
from support.small_disk import mounted_disk

pytestmark = pytest.mark.process

AHEAD_MS = 1_000


class Doctor:
    """One run of it, in this process. ``checks`` are verdict and finding, by name."""

    def __init__(self, *options: str) -> None:
        with redirect_stdout(io.StringIO()) as shown, redirect_stderr(io.StringIO()) as said:
            self.code = run(["doctor", *options, "-o", "json"])
        assert shown.getvalue(), said.getvalue()
        self.shown = shown.getvalue()
        report = json.loads(self.shown)
        self.facts: dict[str, Any] = report["facts"]
        self.checks = {each["name"]: (each["verdict"], each["found"]) for each in report["checks"]}
        self.failed = sorted(name for name, (verdict, _) in self.checks.items() if verdict == "fail")


def test_with_no_node_it_says_so_in_time_and_looks_at_the_host(tmp_path: Path) -> None:
    doctor = Doctor("--endpoint", "127.0.0.1:1", "--data-dir", str(tmp_path / "none"))
    assert doctor.code == 8
    assert doctor.failed == [f"directory {tmp_path / 'none'}", "nodes answer"]
    assert doctor.checks["nodes answer"] == ("fail", "0 of 1; 127.0.0.1:1: nothing listens there")
    assert doctor.facts["host"]["packages"]["grpcio"]


def test_it_names_the_commands_for_all_that_it_does_not_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--endpoint", "127.0.0.1:1"]) == 8
    shown = capsys.readouterr().out
    _, left = shown.split("not checked here:\n")
    assert left.count("\n") == len(NOT_CHECKED)
    for name, line in NOT_CHECKED:
        assert f"{name} " in left
        assert left.count(line) == 1
        check_command(line.split()[1:])


def test_with_wrong_settings_it_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CORTADO_TIMEOUT", "soon")
    monkeypatch.setenv("CORTADO_SERVER_LISTN", "x")
    doctor = Doctor()
    assert doctor.code == 8
    assert {"settings of the command line", "settings of a server", "nodes"} <= set(doctor.failed)
    assert "did you mean CORTADO_SERVER_LISTEN?" in doctor.checks["settings of a server"][1]


def test_one_node_is_looked_at_while_it_runs_and_nothing_secret_gets_out(tmp_path: Path) -> None:
    secrets = ["plantedkey", "plantedvalue", "plantedtoken", "plantedpassword", "MIIplantedpem"]
    certifier = Certifier(tmp_path / "certs")
    files = certifier.client("ops")
    private = files.key.read_text().splitlines()[1]
    log = tmp_path / "server.log"
    log.write_text(
        "2026-11-20T10:00:00.000Z INFO serving\n"
        "2026-11-20T10:00:01.000Z ERROR damaged data: key 'plantedkey' holds b'plantedvalue'\n"
        "2026-11-20T10:00:02.000Z WARNING authorization: Bearer plantedtoken\n"
        "2026-11-20T10:00:03.000Z WARNING exporting to https://me:plantedpassword@collector:4317\n"
        "-----BEGIN PRIVATE KEY-----\nMIIplantedpem\n-----END PRIVATE KEY-----\n"
    )
    bundle = tmp_path / "doctor.tar.gz"
    config = tmp_path / "cortado.toml"
    config.write_text(f"data-dir = 'data'\ntls-key = '{files.key}'\ntls-cert = '{files.cert}'\ntls-ca = '{files.ca}'\n")
    with running_server(tmp_path / "data") as server:
        with grpc.insecure_channel(server.endpoint) as channel:
            put = kv_pb2.KvPutRequest(namespace="n", key=b"plantedkey", value=b"plantedvalue")
            kv_pb2_grpc.KeyValueStub(channel).Put(put, timeout=10)
        options = ("--endpoint", server.endpoint, "--log", str(log), "--config", str(config), "--bundle", str(bundle))
        doctor = Doctor(*options)
        assert server.is_running
    # The disk of this machine is unknown to the test.
    path = tmp_path / "data"
    assert set(doctor.failed) <= {f"sync of {path}", f"file system of {path}"}, doctor.checks
    assert (doctor.code == 0) == (not doctor.failed)
    [directory] = doctor.facts["data_directories"].values()
    assert directory["identity"]["node_id"]
    assert directory["owner_process"]["alive"] is True
    assert directory["sync"]["median_ms"] > 0
    [node] = doctor.facts["nodes"].values()
    assert {each["name"]: each["value"] for each in node["settings"]}["listen"] == server.endpoint
    assert doctor.facts["logs"]["server.log"]["error"] == 1
    assert doctor.checks[f"certificate {files.cert}"][0] in ("ok", "warn")

    with tarfile.open(bundle) as archive:
        texts = {each.name: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]
    assert set(texts) == {"cortado-doctor/report.json", "cortado-doctor/logs/server.log"}
    assert bundle.stat().st_mode & 0o077 == 0
    assert "INFO serving" in texts["cortado-doctor/logs/server.log"]
    for secret in (*secrets, private):
        assert all(secret not in text for text in (*texts.values(), doctor.shown))


def test_a_full_disk_in_memory_is_two_failures_and_what_to_do(tmp_path: Path) -> None:
    with mounted_disk(tmp_path / "disk", 48) as disk:
        server = ServerProcess(disk / "data", "--map-size", "16MiB")
        try:
            server.start()
            doctor = Doctor("--endpoint", server.endpoint)
        finally:
            server.kill()
    path = str(disk / "data")
    assert doctor.code == 8
    assert doctor.checks[f"file system of {path}"] == ("fail", "tmpfs")
    assert doctor.checks[f"disk of {path}"][0] == "fail"
    assert any(name.startswith("disk of ") and name != f"disk of {path}" for name in doctor.failed)


def test_an_expired_certificate_is_found_beside_what_the_server_shows(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path / "certs")
    node = certifier.node("n1")
    expired = certifier.node("old", now=NOW - timedelta(days=DAYS + 1))
    expired.key.chmod(0o644)

    def options(files: TlsFiles) -> tuple[str, ...]:
        return ("--tls-ca", str(files.ca), "--tls-cert", str(files.cert), "--tls-key", str(files.key))

    with running_server(tmp_path / "data", "--node-id", "n1", *options(node)) as server:
        doctor = Doctor("--endpoint", server.endpoint, *options(expired))
    assert doctor.code == 8
    assert doctor.failed == [f"certificate {expired.cert}", "nodes answer"]
    assert doctor.checks[f"certificate {expired.cert}"][1].startswith("expired on ")
    assert doctor.checks[f"certificate {server.endpoint}"][1].startswith("valid until "), "what it shows is looked at"
    assert doctor.checks[f"key {expired.key}"] == ("warn", "mode 644")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes; the clock of ``n3`` is ahead."""
    under = {"n3": ("env", f"CORTADO_SERVER_CLOCK_OFFSET_MS={AHEAD_MS}")}
    made = Cluster(tmp_path_factory.mktemp("doctor"), under=under)
    try:
        yield made.form()
    finally:
        made.end()


def has_seen_down(client: Client, node_id: str) -> bool:
    found = client.admin.members.list(at_leader=True).member(node_id)
    return found is not None and found.down and found.behind is None


def test_a_wrong_clock_and_a_dead_node_are_found_from_any_member(cluster: Cluster) -> None:
    wait_until(lambda: all(len(each.clock_offsets) == 2 for each in cluster.statuses().values()), "clocks are compared")
    doctor = Doctor("--endpoint", cluster.addresses["n1"])
    assert set(doctor.facts["nodes"]) == set(cluster.addresses.values())
    assert doctor.checks["nodes answer"] == ("ok", "3 of 3")
    assert doctor.checks["number of voters"] == ("ok", "3")
    assert doctor.checks["clocks around n1"][0] == "fail"
    assert "that of n3 is off by" in doctor.checks["clocks around n1"][1]
    assert doctor.checks["clock of n3"][0] == "warn"
    assert doctor.code == 8

    cluster.kill("n2")
    cluster.leader(besides=["n2"])
    with Client(cluster.endpoints) as client:
        wait_until(lambda: has_seen_down(client, "n2"), "the leader takes it for dead")
    doctor = Doctor("--endpoint", cluster.endpoints)
    verdict, found = doctor.checks["lag of n2"]
    assert (verdict, found.partition(", ")[0]) == ("warn", "unknown: down")
    with redirect_stdout(io.StringIO()) as shown:
        run(["--endpoint", cluster.endpoints, "member", "list"])
    [line] = [line.split() for line in shown.getvalue().splitlines() if line.startswith("n2")]
    assert line[3:6] == ["voter", "down", "unknown"], line
    assert doctor.checks["majority"] == ("warn", "2 of 3 voters answer")
    assert doctor.checks["nodes answer"][1] == f"2 of 3; {cluster.addresses['n2']}: nothing listens there"

    # One that holds its connections and says nothing takes no longer than it may.
    cluster.pause("n3")
    hung = threading.Timer(60, lambda: cluster.resume("n3"))
    hung.start()
    try:
        doctor = Doctor("--endpoint", cluster.endpoints, "--timeout", "1")
    finally:
        hung.cancel()
        cluster.resume("n3")
    assert doctor.checks["majority"] == ("fail", "1 of 3 voters answer")
