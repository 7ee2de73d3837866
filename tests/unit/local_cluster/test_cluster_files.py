"""The files of a local cluster: written files are read, damaged ones are named, and one supervisor has them."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import DataDirectoryError, InvalidArgument, Unavailable
from cortado.store.cli.app import run
from cortado.store.cli.failures import USAGE
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, NodeRun, Plan, Run
from cortado.store.local_cluster.logs import rotate
from cortado.store.local_cluster.nodes import BACKOFF_MAX_S, backoff_s, command_of
from cortado.store.local_cluster.ports import free_ports
from cortado.store.local_cluster.prepare import check_count, make_certificates, prepare
from cortado.store.local_cluster.processes import ProcessId

PLAN = Plan(
    (
        NodePlan("n1", "127.0.0.1:7001", "127.0.0.1:7101", True, True),
        NodePlan("n2", "127.0.0.1:7002", "127.0.0.1:7102"),
    ),
    has_tls=True,
)


@pytest.fixture
def files(tmp_path: Path) -> ClusterFiles:
    return ClusterFiles(tmp_path)


def test_a_plan_and_a_run_come_back(files: ClusterFiles) -> None:
    files.write_plan(PLAN)
    assert files.read_plan() == PLAN
    written = Run(ProcessId(7, "123"), {"n1": NodeRun(ProcessId(8, "124"), 2, -9), "n2": NodeRun()}, True, "a problem")
    files.write_run(written)
    assert files.read_run() == written


def test_a_directory_without_a_cluster_is_named(files: ClusterFiles) -> None:
    with pytest.raises(InvalidArgument, match=r"--dir: holds no local cluster; cortado dev up makes one"):
        files.read_plan()
    assert files.read_run() == Run()
    assert files.running() is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 2}', '{"format": 1, "nodes": [{}]}'])
def test_a_damaged_plan_is_named(files: ClusterFiles, text: str) -> None:
    (files.directory / "cluster.json").write_text(text)
    with pytest.raises(DataDirectoryError, match=r"cluster\.json is damaged"):
        files.read_plan()


def test_one_supervisor_at_a_time(files: ClusterFiles) -> None:
    with files.locked(), pytest.raises(Unavailable, match="is up already"), files.locked():
        raise AssertionError("two have it")
    with files.locked():
        pass


def test_cuts_come_back(files: ClusterFiles) -> None:
    assert files.read_cut("n1") == set()
    files.write_cut("n1", {"n2", "n3"})
    assert files.read_cut("n1") == {"n2", "n3"}
    assert files.faults("n1").read_text() == "n2\nn3\n", "the form that cortado server reads"


def test_an_unknown_node_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidArgument, match=r"NODE: must be one of n1, n2 \(got 'n3'\)"):
        PLAN.node("n3")


# --- files of a directory of unknown origin ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cluster.json", "run.json"])
def test_a_pipe_a_link_and_a_file_without_end_are_refused(files: ClusterFiles, name: str, tmp_path: Path) -> None:
    files.write_plan(PLAN)
    files.write_run(Run())
    path, elsewhere = files.directory / name, tmp_path / "elsewhere"
    elsewhere.write_bytes(path.read_bytes())
    read = files.read_plan if name == "cluster.json" else files.read_run
    read()
    for make, problem in (
        (lambda: os.mkfifo(path), "it is no regular file"),
        (lambda: path.symlink_to(elsewhere), "it is a link, and is not followed"),
        (lambda: path.symlink_to("/dev/zero"), "it is a link, and is not followed"),
        (lambda: path.write_bytes(b" " * (2 << 20)), "it has more than 1048576 bytes"),
    ):
        path.unlink()
        make()
        with pytest.raises(DataDirectoryError, match=rf"its {name} cannot be read: {problem}"):
            read()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"address": "192.0.2.1:7621"}, "192.0.2.1:7621 is not an address of this machine"),
        ({"peer_address": "db.example:7621"}, "db.example:7621 is not an address of this machine"),
        ({"address": 7}, "damaged"),
        ({"node_id": "../../home"}, "'../../home' is no id of a node here"),
        ({"node_id": ["n1"]}, "is no id of a node here"),
    ],
)
def test_a_plan_names_nodes_of_this_machine_alone(files: ClusterFiles, change: dict[str, Any], problem: str) -> None:
    files.write_plan(PLAN)
    record = json.loads((files.directory / "cluster.json").read_text())
    record["nodes"][1] |= change
    (files.directory / "cluster.json").write_text(json.dumps(record))
    with pytest.raises(DataDirectoryError, match=problem):
        files.read_plan()


@pytest.mark.parametrize("pid", [-1, 0, 1, "7", 1 << 40, None])
def test_a_run_names_processes_alone(files: ClusterFiles, pid: object) -> None:
    files.write_run(Run(ProcessId(7, "1")))
    record = json.loads((files.directory / "run.json").read_text())
    record["supervisor"]["pid"] = pid
    (files.directory / "run.json").write_text(json.dumps(record))
    with pytest.raises(DataDirectoryError, match="is no process id"):
        files.read_run()


def test_a_plan_of_another_user_is_not_trusted(files: ClusterFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_plan(PLAN)
    files.directory.chmod(0o777)
    with pytest.raises(InvalidArgument, match="--dir: may be written by other users, and is not trusted: chmod go-w"):
        files.read_plan()
    files.directory.chmod(0o700)
    files.read_plan()
    lstat, owner = Path.lstat, os.geteuid() + 1

    def of_another(path: Path) -> os.stat_result:
        found = list(lstat(path))
        found[4] = owner
        return os.stat_result(found)

    monkeypatch.setattr(Path, "lstat", of_another)
    with pytest.raises(InvalidArgument, match="--dir: belongs to another user, and is not trusted"):
        files.read_plan()


def test_what_a_cluster_writes_goes_through_no_link(files: ClusterFiles, tmp_path: Path) -> None:
    mine, config = tmp_path / "mine", tmp_path / "given.toml"
    mine.write_text("mine")
    config.write_text("heartbeat-ms = 50\n")
    tls = files.tls
    tls.mkdir()
    names = ("cluster.json.new", "run.json.new", "n1/faults.new", "server.toml", "tls/ca.key", "tls/n1.key", "log.new")
    files.node("n1").mkdir()
    for name in names:
        (files.directory / name).symlink_to(mine)
    files.write_plan(PLAN)
    files.write_run(Run())
    files.write_cut("n1", {"n2"})
    make_certificates(tls, ["n1"])
    (files.directory / "log").write_bytes(b"line\n" * 100)
    assert rotate(files.directory / "log", 10)
    (files.directory / "log").unlink()
    (files.directory / "log").symlink_to(mine)
    assert not rotate(files.directory / "log", 1)
    files.data("n1").mkdir()
    prepare(files, nodes=None, config=config)
    assert files.settings.read_text() == config.read_text()
    assert mine.read_text() == "mine"


# --- processes -------------------------------------------------------------------------------------------------


def test_a_signal_reaches_the_process_and_no_other_one(tmp_path: Path) -> None:
    held = tmp_path / "server.log"
    with held.open("wb") as log:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=log)
    try:
        known = ProcessId.of(child.pid)
        assert known.is_alive()
        assert not known.is_paused()
        another = dataclasses.replace(known, started=known.started + "1")
        assert not another.is_alive()
        assert not another.send(signal.SIGKILL, holding=held), "the id belongs to another process now"
        with pytest.raises(InvalidArgument, match=rf"run.json: names process {child.pid}, which does not have"):
            known.send(signal.SIGKILL, holding=tmp_path)
        assert child.poll() is None
        assert known.send(signal.SIGKILL, holding=held)
    finally:
        child.kill()
        child.communicate()
    assert not known.is_alive()
    assert not known.send(signal.SIGKILL, holding=held)


@pytest.mark.parametrize("command", [("kill", "n1"), ("pause", "n1"), ("resume", "n1"), ("down",)])
def test_no_command_signals_a_process_that_is_not_the_clusters(files: ClusterFiles, command: tuple[str, ...]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        files.write_plan(PLAN)
        named = ProcessId.of(child.pid)
        files.log("n1").parent.mkdir()
        files.log("n1").touch()
        files.lock.touch()
        files.write_run(Run(named, {"n1": NodeRun(named)}))
        assert run(["dev", *command, "--dir", str(files.directory)]) == USAGE
        assert child.poll() is None
        assert not named.is_paused()


def test_waits_grow_up_to_a_bound() -> None:
    assert [backoff_s(failures) for failures in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert backoff_s(1_000) == BACKOFF_MAX_S


def test_only_the_first_node_may_begin_a_cluster(files: ClusterFiles) -> None:
    first, second = (list(command_of(files, PLAN, node, 9)) for node in PLAN.nodes)
    assert "--join" not in first
    assert first[first.index("--peer-listen") + 1] == "127.0.0.1:7101"
    assert second[second.index("--join") + 1] == "127.0.0.1:7101"
    assert second[second.index("--parent-fd") + 1] == "9"
    assert "--tls-cert" in first
    assert "--config" not in first
    files.settings.touch()
    assert "--config" in command_of(files, PLAN, PLAN.nodes[0], 9)


# --- making and resuming a plan --------------------------------------------------------------------------------


def test_a_port_in_use_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port not in free_ports(3, port)
    with pytest.raises(InvalidArgument, match="--port: must be between 1024 and 65535"):
        free_ports(1, 80)
    with pytest.raises(Unavailable, match="no 9 free ports"):
        free_ports(9, 65_530)


def test_a_plan_is_made_once_and_gone_on_with(files: ClusterFiles) -> None:
    made = prepare(files, nodes=2, port=21_000, config=None)
    assert [each.node_id for each in made.nodes] == ["n1", "n2"]
    assert prepare(files, nodes=None, port=22_000, config=None) == made, "nodes keep their addresses"
    more = prepare(files, nodes=3, config=None)
    assert 21_000 <= int(more.nodes[2].address.rpartition(":")[2]) < 22_000, "beside the others"
    assert more.nodes[:2] == made.nodes
    assert more.nodes[2].address not in {each.address for each in made.nodes}
    with pytest.raises(InvalidArgument, match="--nodes: this cluster has 3; cortado member remove"):
        prepare(files, nodes=2, port=21_000, config=None)
    with pytest.raises(InvalidArgument, match="--tls: this cluster was made without"):
        prepare(files, nodes=3, port=21_000, has_tls=True, config=None)


def test_what_is_wrong_is_refused_before_anything_is_made(files: ClusterFiles) -> None:
    with pytest.raises(InvalidArgument, match=r"--nodes: must be between 1 and 9 \(got 10\)"):
        check_count(10)
    (files.directory / "letters").mkdir()
    with pytest.raises(InvalidArgument, match=r"--dir: is neither empty nor a local cluster's \(it holds 'letters'\)"):
        prepare(files, nodes=3, config=None)
    (files.directory / "letters").rmdir()
    with pytest.raises(InvalidArgument, match="--config: cannot be read"):
        prepare(files, nodes=3, port=21_000, config=files.directory / "none.toml")


def test_data_that_is_gone_is_not_begun_anew(files: ClusterFiles) -> None:
    plan = prepare(files, nodes=1, port=21_000, config=None)
    files.write_plan(plan.with_node(dataclasses.replace(plan.nodes[0], is_voter=True)))
    with pytest.raises(DataDirectoryError, match="the data of n1 is gone"):
        prepare(files, nodes=1, port=21_000, config=None)


def test_certificates_are_made_once(files: ClusterFiles) -> None:
    prepare(files, nodes=1, port=21_000, has_tls=True, config=None)
    made = {each.name: each.read_bytes() for each in files.tls.iterdir()}
    assert set(made) == {f"{name}.{kind}" for name in ("ca", "n1", "local") for kind in ("crt", "key")}
    assert all(each.stat().st_mode & 0o077 == 0 for each in files.tls.glob("*.key"))
    prepare(files, nodes=2, port=21_000, config=None)
    assert made.items() <= {each.name: each.read_bytes() for each in files.tls.iterdir()}.items()
