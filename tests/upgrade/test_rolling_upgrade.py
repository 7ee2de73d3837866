"""Three nodes go from a build to the next one and back, node by node, while clients call.

Two builds in a row have one format of directories, and each reads what the other writes
(docs/adr/0019-read-before-written.md). Here they are this build and one that might come next;
``CORTADO_UPGRADE_FROM=<commit>`` goes from another build to this one. Clients are upgraded after servers, so they are
of the earlier build all the way: what it could do, it can do on either, and on any mixture of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.builds import ROOT, Build, builds_in_a_row
from support.cluster import Cluster

pytestmark = [pytest.mark.long, pytest.mark.process]

PROGRESS = 20
"""Writes that must be acknowledged between two steps."""
ANSWER_S = 60.0


class Callers:
    """Callers of a build, in a process of their own."""

    def __init__(self, build: Build, cluster: Cluster, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.calling_process", cluster.endpoints, name],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{build.path}:{ROOT / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_progress(self) -> None:
        """Until so many more writes were acknowledged."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{PROGRESS}\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise AssertionError(f"the callers ended\n{self._process.communicate()[1]}")

    def end(self) -> str:
        """What they were told is checked; which outcomes stayed unknown."""
        said, problem = self._process.communicate(timeout=ANSWER_S)
        assert self._process.returncode == 0, problem
        return said

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def callers_of(build: Build, cluster: Cluster, name: str) -> Iterator[Callers]:
    callers = Callers(build, cluster, name)
    try:
        yield callers
    finally:
        callers.kill()


def roll(cluster: Cluster, cortado: Sequence[str], callers: Callers) -> None:
    """Restart each node with another build, followers first, as docs/operations.md says."""
    leader = cluster.leader()
    for name in sorted(cluster.nodes, key=lambda name: (name == leader, name)):
        node = cluster.nodes[name]
        assert node.stop() == 0
        node.cortado = cortado
        node.start()
        cluster.wait_converged()
        callers.wait_for_progress()


def test_a_cluster_is_upgraded_under_load_and_taken_back(tmp_path: Path) -> None:
    before, after = builds_in_a_row(tmp_path / "other")
    cluster = Cluster(tmp_path)
    for node in cluster.nodes.values():
        node.cortado = before.cortado
    try:
        cluster.form()
        with callers_of(before, cluster, "rolled") as callers:
            callers.wait_for_progress()
            roll(cluster, after.cortado, callers)
            roll(cluster, before.cortado, callers)
            assert callers.end() == "", "the outcome of a request stayed unknown"
        cluster.assert_same_contents("rolled", "rolled-tokens")
        with Client(cluster.endpoints) as client:
            assert client.verify_indexes("rolled.rows").problems == ()
    finally:
        cluster.end()


def test_the_nodes_of_the_test_are_of_the_builds_that_it_means(tmp_path: Path) -> None:
    """Otherwise it would prove nothing: what is installed must not come first."""
    code = "import cortado.store.cli, sys; sys.stdout.write(cortado.store.cli.__file__)"
    for build in builds_in_a_row(tmp_path / "other"):
        ran = subprocess.run(
            [*build.cortado[:-2], "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert Path(ran.stdout).resolve().is_relative_to(build.folder.resolve())
