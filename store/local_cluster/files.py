"""The files of a local cluster: their paths, their content, and their checks.

``cluster.json`` is the plan, which a later ``up`` goes on with; ``run.json`` is true while the supervisor runs. Both
are replaced by a rename, so that a reader finds them whole.

Any user may have made the directory, so these files are not trusted. They are small and regular, and links are not
followed. The directory and the files belong to this user or to root, and no other user may write into the directory.
All addresses are of this machine: a client may show its token there.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortado.errors import DataDirectoryError, InvalidArgument, Unavailable
from cortado.store.files.regular_files import (
    is_of_another_user,
    open_regular,
    others_may_write,
    read_regular,
    replace_small,
)
from cortado.store.local_cluster.processes import ProcessId
from cortado.store.ports.addresses import is_loopback, split_address

FORMAT: Final = 2
NODES_MAX: Final = 9
_JSON_BYTES_MAX: Final = 1 << 20
_FAULTS_BYTES_MAX: Final = 64 << 10
_NODE_ID: Final = re.compile(r"n[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class NodePlan:
    """Clients reach it at ``address``, the other nodes at ``peer_address``.

    ``is_announced``: the cluster was told of it. ``is_voter``: it was made a voter, so its directory exists.

    ``is_removed``: it was a member once, and the cluster has removed it. Its id is not used again.
    """

    node_id: str
    address: str
    peer_address: str
    is_announced: bool = False
    is_voter: bool = False
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes in the order in which they join; the first one began the cluster."""

    nodes: tuple[NodePlan, ...]
    has_tls: bool = False

    @property
    def endpoints(self) -> str:
        """All addresses, as the client takes them."""
        return ",".join(each.address for each in self.members)

    @property
    def members(self) -> tuple[NodePlan, ...]:
        """The nodes that are, or are to be, members."""
        return tuple(each for each in self.nodes if not each.is_removed)

    @property
    def is_complete(self) -> bool:
        return all(each.is_voter for each in self.members)

    def node(self, node_id: str) -> NodePlan:
        """Raise InvalidArgument naming the nodes there are."""
        for each in self.nodes:
            if each.node_id == node_id:
                return each
        known = ", ".join(each.node_id for each in self.nodes)
        raise InvalidArgument("NODE", f"must be one of {known}", repr(node_id))

    def with_node(self, changed: NodePlan) -> Plan:
        nodes = tuple(changed if each.node_id == changed.node_id else each for each in self.nodes)
        return dataclasses.replace(self, nodes=nodes)


@dataclass(frozen=True, slots=True)
class NodeRun:
    """A node's process. ``starts`` counts them in this run; ``last_exit`` is the last one's code, negative a signal.

    ``given_up`` is the reason if it is not started again.
    """

    process: ProcessId | None = None
    starts: int = 0
    last_exit: int | None = None
    given_up: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The supervisor's last report. ``problem`` is the reason if the cluster is not ready."""

    supervisor: ProcessId | None = None
    nodes: dict[str, NodeRun] = field(default_factory=dict)
    is_ready: bool = False
    problem: str = ""


class ClusterFiles:
    """The directory of a local cluster, which ``option`` named. Raises InvalidArgument for a path that is refused for
    the nodes' data too."""

    def __init__(self, directory: Path, option: str = "--dir") -> None:
        if not str(directory).isprintable():
            raise InvalidArgument(option, "must be a path of characters that print", repr(str(directory)))
        self.directory = directory
        self.option = option

    # --- paths -------------------------------------------------------------------------------------------------

    def node(self, node_id: str) -> Path:
        return self.directory / node_id

    def data(self, node_id: str) -> Path:
        return self.node(node_id) / "data"

    def log(self, node_id: str) -> Path:
        return self.node(node_id) / "server.log"

    def faults(self, node_id: str) -> Path:
        return self.node(node_id) / "faults"

    @property
    def tls(self) -> Path:
        return self.directory / "tls"

    @property
    def settings(self) -> Path:
        return self.directory / "server.toml"

    @property
    def lock(self) -> Path:
        """Held open by the supervisor as long as it runs."""
        return self.directory / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        return self.directory / "supervisor.log"

    # --- the plan and the run ----------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return self._plan.exists() or self._plan.is_symlink()

    @property
    def _plan(self) -> Path:
        return self.directory / "cluster.json"

    @property
    def _run(self) -> Path:
        return self.directory / "run.json"

    def read_plan(self) -> Plan:
        """Raise InvalidArgument if there is no cluster, or one that is not to be trusted; DataDirectoryError if the
        file is damaged."""
        if not self.exists:
            problem = "holds no local cluster; cortado dev up makes one"
            raise InvalidArgument(self.option, problem, str(self.directory))
        record = self._read(self._plan)
        try:
            if record["format"] != FORMAT:
                raise ValueError(f"format {record['format']}, not {FORMAT}")
            nodes = tuple(_node(**each) for each in record["nodes"])
            if not nodes:
                raise ValueError("it names no node")
            return Plan(nodes, record["has_tls"] is True)
        except (KeyError, TypeError, ValueError, AttributeError, InvalidArgument) as problem:
            raise DataDirectoryError(str(self.directory), f"its cluster.json is damaged: {problem}") from None

    def write_plan(self, plan: Plan) -> None:
        self._write(self._plan, {"format": FORMAT, **dataclasses.asdict(plan)})

    def read_run(self) -> Run:
        """Return the last run; :meth:`running` tells whether it still runs."""
        if not self._run.exists() and not self._run.is_symlink():
            return Run()
        record = self._read(self._run)
        try:
            nodes = {_checked_id(name): _node_run(**each) for name, each in record["nodes"].items()}
            return Run(_process(record["supervisor"]), nodes, record["is_ready"] is True, str(record["problem"]))
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise DataDirectoryError(str(self.directory), f"its run.json is damaged: {problem}") from None

    def write_run(self, run: Run) -> None:
        self._write(self._run, dataclasses.asdict(run))

    def running(self) -> ProcessId | None:
        """Return the supervisor that runs, if one does."""
        supervisor = self.read_run().supervisor
        return supervisor if supervisor is not None and supervisor.is_alive() else None

    def _read(self, path: Path) -> Any:
        try:
            self._check_trusted(path)
            return json.loads(read_regular(path, _JSON_BYTES_MAX))
        except OSError as error:
            raise DataDirectoryError(str(self.directory), f"its {path.name} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as problem:
            raise DataDirectoryError(str(self.directory), f"its {path.name} is damaged: {problem}") from None

    def _check_trusted(self, path: Path) -> None:
        """Others could name processes to signal, and addresses that tokens are sent to. The directory keeps others away
        from its files, whatever their mode."""
        directory = self.directory.stat()
        if is_of_another_user(directory) or is_of_another_user(path.lstat()):
            problem = "belongs to another user, and is not trusted: use one of yours"
            raise InvalidArgument(self.option, problem, str(path))
        if others_may_write(directory):
            problem = f"may be written by other users, and is not trusted: chmod go-w {self.directory}"
            raise InvalidArgument(self.option, problem, str(path))

    def _write(self, path: Path, record: Any) -> None:
        replace_small(path, f"{json.dumps(record, indent=2)}\n".encode())

    # --- partitions --------------------------------------------------------------------------------------------

    def read_cut(self, node_id: str) -> set[str]:
        """Return the nodes that ``node_id`` neither hears nor speaks to."""
        try:
            return set(read_regular(self.faults(node_id), _FAULTS_BYTES_MAX).decode(errors="replace").split())
        except OSError:
            return set()

    def write_cut(self, node_id: str, cut: set[str]) -> None:
        """Write the nodes to cut off. The node reads the file several times a second."""
        path = self.faults(node_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_small(path, "".join(f"{each}\n" for each in sorted(cut)).encode())

    # --- one supervisor at a time ------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the supervisor's lock. Raises Unavailable if another one has it, InvalidArgument for the directory."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Data, logs and keys of all nodes are below, and a process that can open the lock could hold it.
            self.directory.chmod(0o700)
            descriptor = open_regular(self.lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise InvalidArgument(self.option, f"cannot be used: {error.strerror}", str(self.directory)) from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                problem = f"the cluster in {self.directory} is up already; cortado dev status shows it"
                raise Unavailable(problem) from None
            yield
        finally:
            os.close(descriptor)


def _node(node_id: Any, address: Any, peer_address: Any, **flags: Any) -> NodePlan:
    """Raise ValueError for an id that no cluster has here, or an address that is not of this machine."""
    for each in (address, peer_address):
        host, _ = split_address("address", each)
        if not is_loopback(host):
            raise ValueError(f"{each} is not an address of this machine")
    return NodePlan(_checked_id(node_id), address, peer_address, **{name: flag is True for name, flag in flags.items()})


def _checked_id(node_id: Any) -> str:
    """Return the id, which becomes the name of a directory. Raises ValueError."""
    if not isinstance(node_id, str) or not _NODE_ID.fullmatch(node_id):
        raise ValueError(f"{node_id!r:.80} is no id of a node here")
    return node_id


def _node_run(process: Any, starts: Any, last_exit: Any, given_up: Any) -> NodeRun:
    """Raise ValueError, TypeError."""
    return NodeRun(_process(process), int(starts), None if last_exit is None else int(last_exit), str(given_up))


def _process(record: Any) -> ProcessId | None:
    """Raise ValueError: numbers below 2 are no process of ours, and a signal to them could reach many."""
    if record is None:
        return None
    pid = record["pid"]
    if type(pid) is not int or not 1 < pid < 1 << 31:
        raise ValueError(f"{pid!r:.80} is no process id")
    return ProcessId(pid, str(record["started"]))
