"""The processes of a local cluster's nodes: their start, and their restart.

::

    down ── start ──► running ── ends ──► down, until its next start: 0.5 s later, then 1 s, 2 s ... 10 s
                        │                     └── ran for 30 s: the next wait is the shortest again
                        └── ends with a code that no start cures ──► given up

A node's process has a group of its own, so that Ctrl-C on a terminal reaches the supervisor alone, and one end of the
pipe whose other end only the supervisor holds.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cortado.store.files.regular_files import open_regular
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, NodeRun, Plan
from cortado.store.local_cluster.processes import ProcessId

BACKOFF_FIRST_S: Final = 0.5
BACKOFF_MAX_S: Final = 10.0
RAN_WELL_S: Final = 30.0

# Wrong settings, a directory that cannot be used, a cluster that says no.
NOT_CURED_BY_A_START: Final = frozenset({2, 8, 78})


def backoff_s(failures: int) -> float:
    """Return how long to wait before the next start, after so many ends in a row."""
    return float(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 20)))


def command_of(files: ClusterFiles, plan: Plan, node: NodePlan, parent_fd: int) -> Sequence[str]:
    """Return the server's command line."""
    options = [
        *("--data-dir", str(files.data(node.node_id))),
        *("--node-id", node.node_id),
        *("--listen", node.address),
        *("--peer-listen", node.peer_address),
        *("--faults-file", str(files.faults(node.node_id))),
        *("--parent-fd", str(parent_fd)),
    ]
    others = [each.peer_address for each in plan.members if each.node_id != node.node_id]
    if node.node_id != plan.nodes[0].node_id:
        options += ["--join", ",".join(others)]
    if files.settings.exists():
        options += ["--config", str(files.settings)]
    if plan.has_tls:
        tls = files.tls
        options += ["--tls-cert", str(tls / f"{node.node_id}.crt"), "--tls-key", str(tls / f"{node.node_id}.key")]
        options += ["--tls-ca", str(tls / "ca.crt")]
    return [sys.executable, "-m", "cortado.store.cli", "server", *options]


def environment() -> dict[str, str]:
    """Return a node's environment: ours, without settings for a server.

    These would be for all nodes, and gone at the next start.

    gRPC's own handlers of a fork are of no use to a child that becomes another program.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CORTADO_SERVER_")}
    return {**ours, "GRPC_ENABLE_FORK_SUPPORT": "0"}


@dataclass(frozen=True, slots=True)
class Ended:
    """A node's process ended, by itself or by a signal (then ``code`` is negative).

    ``next_start_in_s`` is None if it is not started again.
    """

    node_id: str
    code: int
    next_start_in_s: float | None


class NodeProcess:
    """One node's process, the one after it, and so on. All calls come from the supervisor's main thread.

    The kernel kills a node when the *thread* that started it ends, which is one more reason for that.
    """

    def __init__(self, files: ClusterFiles, node_id: str, command: Callable[[], Sequence[str]], parent_fd: int) -> None:
        self.node_id = node_id
        self._files = files
        self._command = command
        self._parent_fd = parent_fd
        self._process: subprocess.Popen[bytes] | None = None
        self._id: ProcessId | None = None
        self._starts = 0
        self._failures = 0
        self._started_s = 0.0
        self._next_start_s = 0.0
        self._last_exit: int | None = None
        self._given_up = ""

    @property
    def run(self) -> NodeRun:
        return NodeRun(self._id, self._starts, self._last_exit, self._given_up)

    @property
    def is_given_up(self) -> bool:
        return bool(self._given_up)

    def give_up(self, why: str) -> None:
        """Start it no more."""
        self._given_up = why

    @property
    def next_start_s(self) -> float:
        """When it is to be started (monotonic); infinite if it runs, or is given up."""
        return math.inf if self._process is not None or self._given_up else self._next_start_s

    def step(self, now_s: float) -> Ended | None:
        """Look at the process, and start it if it is due. Returns its end, if it ended."""
        if self._process is None:
            if now_s >= self._next_start_s and not self._given_up:
                self._start(now_s)
            return None
        code = self._process.poll()
        if code is None:
            return None
        self._process = self._id = None
        self._last_exit = code
        if code in NOT_CURED_BY_A_START or self._given_up:
            return Ended(self.node_id, code, None)
        self._failures = 1 if now_s - self._started_s >= RAN_WELL_S else self._failures + 1
        wait_s = backoff_s(self._failures)
        self._next_start_s = now_s + wait_s
        return Ended(self.node_id, code, wait_s)

    def send(self, signal_number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(signal_number)

    def has_ended(self) -> bool:
        """True once there is no process, for one that was told to end."""
        if self._process is not None and self._process.poll() is not None:
            self._last_exit = self._process.returncode
            self._process = self._id = None
        return self._process is None

    def _start(self, now_s: float) -> None:
        self._files.node(self.node_id).mkdir(parents=True, exist_ok=True)
        log_flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(open_regular(self._files.log(self.node_id), log_flags), "ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._parent_fd,),
                process_group=0,
                env=environment(),
            )
        self._id = ProcessId.of(self._process.pid)
        self._starts += 1
        self._started_s = now_s
