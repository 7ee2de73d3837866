"""A cluster of real processes on loopback, made as an operator makes one, and ways to hurt it.

::

    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints) as client:
        before = cluster.leader()
        cluster.kill(before)
        client.kv("n").put(b"k", b"v")
        assert cluster.leader() != before
        cluster.start(before)
        cluster.wait_converged()

The first node begins a cluster of one; each other is added as a member, started with ``--join``, and made a voter. Node
ids are ``n1``, ``n2`` and so on. Questions to one node go there by a plain stub, since a client would follow the
leader.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import grpc

from cortado.proto.v1 import cluster_pb2, cluster_pb2_grpc, common_pb2, kv_pb2, kv_pb2_grpc
from cortado.store.cli.app import run
from cortado.store.client import Client
from support.ports import free_ports
from support.server_process import ServerProcess, wait_until

ELECTED_S = 60.0
CONVERGED_S = 60.0
_LOCAL_POOL = [("grpc.use_local_subchannel_pool", 1)]


def cortado(*arguments: str) -> str:
    """Return a command's standard output. Raises AssertionError if it fails.

    In this process, since starting Python takes longer than most commands do. One that leaves a process behind is
    executed: see :func:`executed`."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = run(arguments)
    assert code == 0, f"cortado {' '.join(arguments)} ended with {code}\n{err.getvalue()}"
    return out.getvalue()


def executed(*arguments: str, timeout_s: float = 60.0) -> str:
    """Run as :func:`cortado` does, by a process of its own."""
    command = [sys.executable, "-m", "cortado.store.cli", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ended.returncode == 0, f"cortado {' '.join(arguments)} ended with {ended.returncode}\n{ended.stderr}"
    return ended.stdout


class Cluster:
    """A cluster with its data below ``folder``. ``options`` go to every ``cortado server``.

    ``data_dirs`` puts the directories of some nodes elsewhere, ``under`` runs some nodes under another command.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        count: int = 3,
        data_dirs: dict[str, Path] | None = None,
        under: dict[str, Sequence[str]] | None = None,
    ) -> None:
        self._folder = folder
        self._options = options
        self._data_dirs = data_dirs or {}
        self._under = under or {}
        self._channels: dict[str, grpc.Channel] = {}
        self.addresses: dict[str, str] = {}
        self.nodes: dict[str, ServerProcess] = {}
        for number in range(1, count + 1):
            self._make(f"n{number}")

    def _make(self, name: str) -> None:
        """Make a node that is not started yet; it joins the others, if there are any."""
        join = ("--join", ",".join(each.peer_address for each in self.nodes.values())) if self.nodes else ()
        self.addresses[name] = f"127.0.0.1:{free_ports(2)[0]}"
        self.nodes[name] = ServerProcess(
            self._data_dirs.get(name, self._folder / name),
            *("--node-id", name, "--faults-file", str(self._faults_file(name))),
            *join,
            *self._options,
            listen=self.addresses[name],
            under=self._under.get(name, ()),
        )

    @property
    def endpoints(self) -> str:
        """All addresses, as a client takes them."""
        return ",".join(self.addresses.values())

    # --- making it ---------------------------------------------------------------------------------------------

    def form(self) -> Cluster:
        """Start every node, and make it a voter."""
        first, *others = self.nodes
        self.nodes[first].start()
        for name in others:
            self.add(name)
        self.wait_converged()
        return self

    def add(self, name: str) -> None:
        """Announce a node, start it, and make it a voter."""
        if name not in self.nodes:
            self._make(name)
        with Client(self.addresses[self.leader()]) as client:
            client.admin.members.add(name, self.nodes[name].peer_address)
        self.nodes[name].start()
        self.promote(name)

    def promote(self, name: str) -> None:
        """Make a learner a voter, as soon as it has caught up."""
        wait_until(lambda: self._is_promoted(name), f"{name} is a voter", CONVERGED_S)

    def remove(self, name: str) -> None:
        """Take a node out of the cluster, and end it."""
        with Client(self.endpoints) as client:
            client.admin.members.remove(name)
        self.nodes.pop(name).kill()
        del self.addresses[name]

    def _is_promoted(self, name: str) -> bool:
        address = self.addresses[self.leader()]
        request = cluster_pb2.PromoteMemberRequest(node_id=name)
        try:
            self._stub(address).PromoteMember(request, timeout=30)
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION), error
            return False
        return True

    # --- status ------------------------------------------------------------------------------------------------

    def status(self, name: str, timeout_s: float = 2.0) -> cluster_pb2.StatusResponse | None:
        """Return a node's status, or None if it does not answer."""
        if not self.nodes[name].is_running:
            return None
        address = self.addresses[name]
        is_kept = address in self._channels
        try:
            return self._stub(address).Status(cluster_pb2.StatusRequest(), timeout=timeout_s)  # type: ignore[no-any-return]
        except grpc.RpcError as error:
            self._hang_up(address)
            if is_kept and error.code() is grpc.StatusCode.UNAVAILABLE:
                # The connection was to an earlier process of the node.
                return self.status(name, timeout_s)
            return None

    def _stub(self, address: str) -> Any:
        """Return a stub on one connection for as long as the node answers: it is asked hundreds of times while a test
        waits."""
        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(address, options=_LOCAL_POOL)
        return cluster_pb2_grpc.ClusterStub(self._channels[address])

    def _hang_up(self, address: str) -> None:
        """Close the connection. The next question connects anew, at once: gRPC by itself waits longer and longer."""
        channel = self._channels.pop(address, None)
        if channel is not None:
            channel.close()

    def statuses(self, besides: Sequence[str] = ()) -> dict[str, cluster_pb2.StatusResponse]:
        """Return the status of every node that answers, except those in ``besides``."""
        asked = {name: self.status(name) for name in self.nodes if name not in besides}
        return {name: status for name, status in asked.items() if status is not None}

    def leader(self, besides: Sequence[str] = (), timeout_s: float = ELECTED_S) -> str:
        """Return the leader of the newest term, as soon as there is one that is not among ``besides``."""
        found: list[str] = []

        def is_elected() -> bool:
            leading = [
                (int(status.header.term), name)
                for name, status in self.statuses(besides).items()
                if status.role == "leader" and status.leader == name
            ]
            found[:] = [name for _, name in sorted(leading)[-1:]]
            return bool(found)

        wait_until(is_elected, "there is a leader", timeout_s)
        return found[0]

    def follower(self) -> str:
        """Return a node that runs and does not lead."""
        leader = self.leader()
        return next(name for name, node in self.nodes.items() if name != leader and node.is_running)

    def term(self) -> int:
        return int(self.statuses()[self.leader()].header.term)

    def wait_converged(self, timeout_s: float = CONVERGED_S) -> None:
        """Wait until every node runs, follows one leader, and has applied the leader's log as of now. Load may go
        on."""
        goal: list[int] = []

        def is_converged() -> bool:
            statuses = self.statuses()
            following = {(each.header.term, each.leader) for each in statuses.values()}
            if len(statuses) != len(self.nodes) or len(following) != 1:
                return False
            ((_, leader),) = following
            if leader not in statuses:
                return False
            goal.append(statuses[leader].last_index)
            return all(each.applied_index >= goal[0] for each in statuses.values())

        try:
            wait_until(is_converged, "all nodes have applied the same", timeout_s)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.described()}") from None

    def described(self) -> str:
        """Return each node in a line, for a test that failed."""
        statuses = self.statuses()
        return "\n".join(
            f"{name}: {each.role} of {each.leader or 'nobody'} in term {each.header.term}, {each.state}, applied "
            f"{each.applied_index} of {each.last_index}"
            if (each := statuses.get(name)) is not None
            else f"{name}: no answer"
            for name in self.nodes
        )

    # --- hurting it --------------------------------------------------------------------------------------------

    def start(self, *names: str) -> None:
        """Start nodes that were killed or stopped (all of them, if none is named), at once."""
        chosen = [self.nodes[name] for name in names or self.nodes if not self.nodes[name].is_running]
        for node in chosen:
            node.launch()
        for node in chosen:
            node.await_ready()

    def kill(self, *names: str) -> None:
        """Kill with kill -9, all at once if several are named."""
        for name in names:
            if self.nodes[name].is_running:
                os.kill(self.nodes[name].pid, 9)
        for name in names:
            self.nodes[name].kill()

    def pause(self, name: str) -> None:
        self.nodes[name].pause()

    def resume(self, name: str) -> None:
        self.nodes[name].resume()

    def cut(self, name: str) -> None:
        """Stop all traffic between ``name`` and the other nodes; clients still reach all of them."""
        others = sorted(each for each in self.nodes if each != name)
        self._be_cut({name: others} | {other: [name] for other in others})

    def heal(self) -> None:
        """Restore all traffic."""
        self._be_cut({name: [] for name in self.nodes})

    def _be_cut(self, from_whom: dict[str, list[str]]) -> None:
        """Returns once all that run, and are not paused, have said so."""
        for name, others in from_whom.items():
            self._write_faults(name, others)
        asked = [name for name in from_whom if self.nodes[name].is_running and not self.nodes[name].is_paused]
        wait_until(lambda: all(self._cut_off_from(name) == from_whom[name] for name in asked), "nodes are cut off")

    def _cut_off_from(self, name: str) -> list[str]:
        """Return the nodes that it is cut off from, as it said last."""
        path = re.escape(str(self._faults_file(name)))
        said = re.findall(rf"cut off from (.*) by {path}", self.nodes[name].log_since_its_start)
        return said[-1].split(", ") if said and said[-1] != "nobody" else []

    def _faults_file(self, name: str) -> Path:
        return self._folder / f"{name}.faults"

    def _write_faults(self, name: str, others: Sequence[str]) -> None:
        # Replaced whole, so that a node never reads half of it.
        path = self._faults_file(name)
        written = path.with_suffix(".new")
        written.write_text("".join(f"{other}\n" for other in others))
        written.replace(path)

    def mend(self) -> None:
        """Heal, resume and start everything, and wait until it has converged."""
        self.heal()
        for node in self.nodes.values():
            if node.is_running:
                node.resume()
        self.start()
        self.wait_converged()

    def end(self) -> None:
        """Kill everything that runs."""
        for address in list(self._channels):
            self._hang_up(address)
        self.kill(*self.nodes)

    # --- one replica's data ------------------------------------------------------------------------------------

    def contents(self, name: str, namespace: str, at: common_pb2.Timestamp) -> dict[bytes, bytes]:
        """Return a namespace as this replica has it at a timestamp that it has closed."""
        request = kv_pb2.KvScanRequest(namespace=namespace, at=common_pb2.ReadAt(timestamp=at))
        with grpc.insecure_channel(self.addresses[name], options=_LOCAL_POOL) as channel:
            replies = kv_pb2_grpc.KeyValueStub(channel).Scan(request, timeout=30)
            return {pair.key: pair.value for reply in replies for pair in reply.pairs}

    def assert_same_contents(self, *namespaces: str) -> None:
        """Check that every replica holds the same at the newest timestamp that all have applied."""
        self.wait_converged()
        with grpc.insecure_channel(self.addresses[self.leader()], options=_LOCAL_POOL) as channel:
            clock = cluster_pb2_grpc.ClusterStub(channel).Clock(cluster_pb2.ClockRequest(), timeout=30)
        for namespace in namespaces:
            first, *others = (self.contents(name, namespace, clock.last_applied) for name in self.nodes)
            assert all(other == first for other in others), f"replicas differ in {namespace}"

    @property
    def logs(self) -> str:
        """Return the logs of all nodes so far."""
        return "\n".join(f"--- {name}\n{node.log}" for name, node in self.nodes.items())


@contextmanager
def running_cluster(folder: Path, *options: str, count: int = 3) -> Iterator[Cluster]:
    """Run a cluster for the length of a ``with`` block, and kill it at the end."""
    cluster = Cluster(folder, *options, count=count)
    try:
        yield cluster.form()
    finally:
        cluster.end()
