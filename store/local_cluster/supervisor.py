"""The supervisor: starts the nodes of a local cluster, restarts those that die, and leaves nothing behind.

::

    main thread     when a node ends, is due or was announced, and every second: look at the nodes, start those that are
                    due, write run.json if something changed, rotate logs that have grown long
    growth thread   member add, join, promote, until the cluster is as planned; then look for nodes that were removed

All processes are started by the main thread. A signal (SIGTERM, SIGINT, SIGHUP) stops the nodes as an operator would,
all at once; a second one, or ten seconds, kills them. If a node ends in a way that no start cures before the cluster
was ever complete, the supervisor ends too: a user has to mend the cause first.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

from cortado.errors import CortadoError, Unavailable
from cortado.store.client import Client
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, Plan, Run
from cortado.store.local_cluster.growth import Stopped, grow, watch_removals
from cortado.store.local_cluster.logs import last_line, rotate
from cortado.store.local_cluster.nodes import Ended, NodeProcess, command_of
from cortado.store.local_cluster.processes import ProcessId

STEP_S: Final = 1.0
"""The longest time between two looks: events that call for one wake the main thread."""
END_STEP_S: Final = 0.1
STOP_S: Final = 10.0
GROWTH_END_S: Final = 0.2


class Supervisor:
    """Runs the cluster in ``files``, as ``plan`` has it. ``say`` is given a line for people at a time."""

    def __init__(
        self, files: ClusterFiles, plan: Plan, connect: Callable[[Plan], Client], say: Callable[[str], None]
    ) -> None:
        self.plan = plan
        self._files = files
        self._connect = connect
        self._say = say
        self._lock = threading.Lock()
        self._asked = 0
        self._stop = threading.Event()
        self._is_ready = False
        self._problem = ""
        self._written: Run | None = None
        # Signals write to it, and so does the growth thread.
        self._woken_fd, self._wake_fd = os.pipe()
        for each in (self._woken_fd, self._wake_fd):
            os.set_blocking(each, False)
        self._self = ProcessId.of(os.getpid())
        # The nodes end when this process does, in any way: no other process holds the end that is never written to.
        self._parent_fd, self._kept_open = os.pipe()
        self._nodes = {each.node_id: self._process(each) for each in plan.nodes}

    def _process(self, node: NodePlan) -> NodeProcess:
        return NodeProcess(
            self._files,
            node.node_id,
            lambda: command_of(self._files, self.plan, node, self._parent_fd),
            self._parent_fd,
        )

    # --- what growing needs ------------------------------------------------------------------------------------

    def change(self, node: NodePlan) -> None:
        with self._lock:
            self.plan = self.plan.with_node(node)
            self._files.write_plan(self.plan)
        self._wake()

    def say(self, text: str) -> None:
        self._say(text)

    def rest(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Stopped

    # --- life --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until a signal. Call it on the main thread. Raises Unavailable if the cluster cannot come about."""
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)
        growth = threading.Thread(target=self._grow, name="growth", daemon=True)
        growth.start()
        try:
            while not self._stop.is_set():
                self._rest_until(self._step())
        finally:
            self._end()
        # It waits only for a call that is under way, and its answer is needed no more.
        growth.join(GROWTH_END_S)
        if self._problem and not self._is_ready:
            raise Unavailable(self._problem)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked += 1
        self._stop.set()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake_fd, b"\0")

    def _rest_until(self, due_s: float) -> None:
        select.select([self._woken_fd], [], [], max(0.0, due_s - time.monotonic()))
        with suppress(BlockingIOError):
            os.read(self._woken_fd, 4096)

    def _step(self) -> float:
        """Look at everything; when to look again at the latest."""
        now_s = time.monotonic()
        due_s = now_s + STEP_S
        # A node that was not announced has nothing to join.
        first = self.plan.nodes[0].node_id
        for each in self.plan.nodes:
            node = self._nodes[each.node_id]
            if each.is_removed and not node.is_given_up:
                node.give_up("it was removed from the cluster")
                node.send(signal.SIGTERM)
            if each.is_announced or each.node_id == first:
                ended = node.step(now_s)
                if ended is not None:
                    self._bury(ended)
                due_s = min(due_s, node.next_start_s)
        for name in self._nodes:
            rotate(self._files.log(name))
        if not self._stop.is_set():
            # Else the end is written once nothing runs any more: a reader of a problem may start the next run.
            self._write()
        return due_s

    def _bury(self, ended: Ended) -> None:
        """Say how a node ended. One that no start cures is given up, and with it a cluster that was never complete."""
        said = self._obituary(ended)
        self._say(said)
        node = self._nodes[ended.node_id]
        if ended.next_start_in_s is not None or node.is_given_up:
            return
        node.give_up(said)
        if not self._is_ready:
            self._problem = said
            self._stop.set()

    def _obituary(self, ended: Ended) -> str:
        how = f"was killed by {signal.Signals(-ended.code).name}" if ended.code < 0 else f"ended with {ended.code}"
        why = "" if ended.code <= 0 else f": {last_line(self._files.log(ended.node_id))}"
        if ended.next_start_in_s is None:
            return f"{ended.node_id} {how}, and is not started again{why}"
        return f"{ended.node_id} {how}, and starts again in {ended.next_start_in_s:g} s{why}"

    def _grow(self) -> None:
        try:
            grow(self, lambda: self._connect(self.plan))
        except Stopped:
            return
        except CortadoError as error:
            self._problem = error.message()
            self._say(f"the cluster is not complete: {self._problem}")
            self._wake()
            return
        self._is_ready = True
        self._say(f"ready: {self.plan.endpoints}")
        self._wake()
        with suppress(Stopped):
            watch_removals(self, lambda: self._connect(self.plan))

    def _write(self) -> None:
        nodes = {name: node.run for name, node in self._nodes.items()}
        run = Run(self._self, nodes, self._is_ready, self._problem)
        if run != self._written:
            self._files.write_run(run)
            self._written = run

    def _end(self) -> None:
        """Stop the nodes, in any state. Returns when none is left."""
        self._say("stopping")
        asked = self._asked
        for node in self._nodes.values():
            node.send(signal.SIGTERM)
            node.send(signal.SIGCONT)
        deadline_s = time.monotonic() + STOP_S
        while not all(node.has_ended() for node in self._nodes.values()):
            if time.monotonic() > deadline_s or self._asked > asked:
                for node in self._nodes.values():
                    node.send(signal.SIGKILL)
            self._rest_until(time.monotonic() + END_STEP_S)
        self._files.write_run(Run(None, {name: node.run for name, node in self._nodes.items()}, False, self._problem))
        self._say("stopped")


def say_on_stdout(text: str) -> None:
    """Write a line on standard output. A closed output does not matter."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError:
        return
