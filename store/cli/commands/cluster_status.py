"""``cortado cluster status``: the nodes of a cluster on this machine, whether they run or not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.store.cli.commands.cluster_options import DIRECTORY, DirectoryOption
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import Client, Status
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, NodeRun, Plan, Run
from cortado.store.local_cluster.prepare import client_tls

_STATUS_TIMEOUT_S: Final = 1.0


@command(
    "cluster status",
    remote=False,
    examples="""
        cortado cluster status
        cortado cluster status --dir /tmp/five -o json
    """,
)
def status(session: Session, directory: DirectoryOption = DIRECTORY) -> None:
    """Show the nodes of a cluster on this machine: which run, who leads, who is cut off from whom."""
    files = ClusterFiles(directory)
    plan, run = files.read_plan(), files.read_run()
    is_up = run.supervisor is not None and run.supervisor.is_alive()
    with ThreadPoolExecutor(len(plan.nodes)) as pool:
        nodes = list(pool.map(lambda node: _describe(files, plan, run, node), plan.nodes))
    if session.as_json:
        session.show.json(
            {
                "dir": str(directory.absolute()),
                "up": is_up,
                "ready": is_up and run.is_ready,
                "problem": run.problem,
                "supervisor_pid": run.supervisor.pid if is_up and run.supervisor is not None else None,
                "endpoints": plan.endpoints,
                "nodes": nodes,
            }
        )
        return
    session.show.line(f"endpoints: {plan.endpoints}")
    columns = ("node", "address", "process", "state", "role", "term", "applied", "starts", "cut off from")
    session.show.table(columns, [_row(each) for each in nodes])
    if not is_up:
        session.show.note("it is not up; cortado cluster up goes on with it")
    elif run.problem:
        session.show.note(f"it is not complete: {run.problem}")
    for each in nodes:
        if each["state"] == "given up":
            session.show.note(each["given_up"])


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
