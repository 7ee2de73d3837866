"""The nodes of a cluster on this machine: their processes and their status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.store.cli.failures import OK
from cortado.store.cli.render import Renderer
from cortado.store.client import Client, Status
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, NodeRun, Plan, Run
from cortado.store.local_cluster.prepare import client_tls

_STATUS_TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """A cluster as its files and its nodes describe it."""

    directory: Path
    plan: Plan
    run: Run
    nodes: Sequence[dict[str, Any]]
    exit_code: int = OK

    @property
    def is_up(self) -> bool:
        return self.run.supervisor is not None and self.run.supervisor.is_alive()

    def as_json(self) -> Iterable[Any]:
        supervisor = self.run.supervisor if self.is_up else None
        yield {
            "dir": str(self.directory.absolute()),
            "up": self.is_up,
            "ready": self.is_up and self.run.is_ready,
            "problem": self.run.problem,
            "supervisor_pid": None if supervisor is None else supervisor.pid,
            "endpoints": self.plan.endpoints,
            "nodes": list(self.nodes),
        }

    def as_table(self, show: Renderer) -> None:
        show.line(f"endpoints: {self.plan.endpoints}")
        columns = ("node", "address", "process", "state", "role", "term", "applied", "starts", "cut off from")
        show.table(columns, [_row(each) for each in self.nodes])
        if not self.is_up:
            show.note("it is not up; cortado dev up starts it again")
        elif self.run.problem:
            show.note(f"it is not complete: {self.run.problem}")
        for each in self.nodes:
            if each["state"] == "given up":
                show.note(each["given_up"])


def cluster_at(directory: Path) -> ClusterAnswer:
    """Read the files, and ask every node that runs. Raises NotFound if there is no cluster."""
    files = ClusterFiles(directory)
    plan, run = files.read_plan(), files.read_run()
    with ThreadPoolExecutor(len(plan.nodes)) as pool:
        nodes = list(pool.map(lambda node: _describe(files, plan, run, node), plan.nodes))
    return ClusterAnswer(directory, plan, run, nodes)


def _describe(files: ClusterFiles, plan: Plan, run: Run, node: NodePlan) -> dict[str, Any]:
    last = run.nodes.get(node.node_id)
    process = None if last is None else last.process
    found = None
    state = _state_of_stopped(node, last)
    if process is not None and process.is_alive():
        state = "paused" if process.is_paused() else "starting"
        found = None if state == "paused" else _ask(files, plan, node)
        state = state if found is None else found.state
    return {
        "node_id": node.node_id,
        "address": node.address,
        "pid": None if process is None or not process.is_alive() else process.pid,
        "state": state,
        "role": None if found is None else found.role,
        "leader": None if found is None else found.leader,
        "term": None if found is None else found.term,
        "applied_index": None if found is None else found.applied_index,
        "last_index": None if found is None else found.last_index,
        "starts": 0 if last is None else last.starts,
        "last_exit": None if last is None else last.last_exit,
        "given_up": "" if last is None else last.given_up,
        "cut_off_from": sorted(files.read_cut(node.node_id)),
        "data_dir": str(files.data(node.node_id).absolute()),
        "log": str(files.log(node.node_id).absolute()),
    }


def _state_of_stopped(node: NodePlan, last: NodeRun | None) -> str:
    if node.is_removed:
        return "removed"
    if last is not None and last.given_up:
        return "given up"
    return "down" if node.is_announced or node.is_voter else "not made yet"


def _ask(files: ClusterFiles, plan: Plan, node: NodePlan) -> Status | None:
    try:
        with Client(node.address, timeout_s=_STATUS_TIMEOUT_S, tls=client_tls(files, plan)) as client:
            return client.status()
    except CortadoError:
        return None


def _row(node: dict[str, Any]) -> list[Any]:
    shown = [node[each] for each in ("node_id", "address", "pid", "state", "role", "term", "applied_index", "starts")]
    return ["-" if each is None else each for each in shown] + [" ".join(node["cut_off_from"]) or "-"]
