"""The watch over logs and states must see each thing that must never be."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cortado.raft.configuration import Configuration
from cortado.raft.log import Encoded, LogRecord, Payload, RecordKind
from cortado.raft.records import KIND_CONFIGURATION, KIND_DATA, HardState, Record
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.snapshots.marker import applied_key
from support.simulation.cluster import Cluster
from support.simulation.groups import META_ID
from support.simulation.watch import Watch


@dataclass
class FakeLog:
    term: int = 1
    leader: str = ""
    durable_commit_index: int = 0


def idle_node() -> SimpleNamespace:
    """Return a node with nothing in flight."""
    pipeline = SimpleNamespace(use=(0, 0), appended_bytes=0, is_full=False, may_append=True)
    replica = SimpleNamespace(driver=SimpleNamespace(pipeline=pipeline), log=FakeLog())
    return SimpleNamespace(replicas={META_ID: replica}, process=SimpleNamespace(limits=NodeLimits()))


@dataclass
class FakeLife:
    """As much of a life as the watch looks at."""

    node_id: str
    host: Any
    loop: Any
    node: Any = field(default_factory=idle_node)
    is_listening: bool = True


class Scene:
    """A cluster of fakes, with disks and words that a test sets."""

    def __init__(self, *node_ids: str) -> None:
        self.cluster = Cluster("scene")
        self.watch = Watch(self.cluster, META_ID)
        self.watch.term_in_memory = self._term_in_memory  # type: ignore[assignment]
        self.truncated: set[tuple[str, int]] = set()
        self.lives: dict[str, FakeLife] = {}
        for node_id in node_ids:
            host = self.cluster.add_host(node_id)
            host.lives = 1
            life = FakeLife(node_id, host, SimpleNamespace(name=f"{node_id}#1", is_dead=False))
            life.loop.life = life
            host.life = life  # type: ignore[assignment]
            self.lives[node_id] = life

    def restart(self, node_id: str) -> None:
        before = self.lives[node_id]
        before.host.lives += 1
        loop = SimpleNamespace(name=f"{node_id}#{before.host.lives}", is_dead=False)
        self.lives[node_id] = FakeLife(node_id, before.host, loop)
        loop.life = self.lives[node_id]

    def _term_in_memory(self, log: FakeLog, index: int) -> int | None:
        [node_id] = [life.node_id for life in self.lives.values() if life.node.replicas[META_ID].log is log]
        if (node_id, index) in self.truncated:
            return None
        return self.watch._logs[node_id].entries[index][0]

    def write(self, node_id: str, *changes: tuple[Space, bytes, bytes | None]) -> None:
        disk = self.cluster.hosts[node_id].disk
        disk.commit(list(changes))
        disk.finish_sync()

    def logged(self, node_id: str, record: LogRecord) -> None:
        self.cluster.hosts[node_id].disk.log.on_logged([record])

    def entry(self, node_id: str, index: int, term: int, body: bytes = b"x", *, payload: Payload | None = None) -> None:
        kind = KIND_DATA if payload is None else KIND_CONFIGURATION
        record = Record(kind, payload or Encoded(body), index, term)
        self.logged(node_id, record.log_record(1))

    def cut(self, node_id: str, index: int) -> None:
        self.logged(node_id, LogRecord(RecordKind.TRUNCATE, 1, index, 0))

    def apply(self, node_id: str, index: int, term: int, value: bytes = b"v") -> None:
        state = AppliedState(index=index, term=term, last_ts=Timestamp(0, 1_000 + index, 0))
        self.write(node_id, (Space.DATA, b"k%d" % index, value), (Space.META, applied_key(META_ID), state.encode()))

    def says(self, node_id: str, *, term: int, leader: str = "", committed: int = 0) -> None:
        life = self.lives[node_id]
        life.node.replicas[META_ID].log = FakeLog(term, leader, committed)
        self.watch.after_step(life.loop)

    def found(self, *words: str) -> bool:
        return bool(self.cluster.violations) and all(word in self.cluster.violations[0] for word in words)


def test_a_good_history_is_taken() -> None:
    scene = Scene("a", "b")
    for node_id in ("a", "b"):
        scene.entry(node_id, 2, 1)
        scene.entry(node_id, 3, 1, b"y")
    scene.says("a", term=1, leader="a", committed=3)
    scene.says("b", term=1, leader="a", committed=2)
    for node_id in ("a", "b"):
        scene.apply(node_id, 3, 1)
    scene.entry("b", 4, 1, b"lost")
    scene.cut("b", 4)
    scene.says("a", term=2, leader="b")
    assert scene.cluster.violations == ["a#1 took back what was committed: 3 to 0"]
    assert scene.cluster.counts["entries truncated"] == 1


def test_two_leaders_in_a_term() -> None:
    scene = Scene("a", "b")
    scene.says("a", term=2, leader="a")
    scene.says("b", term=2, leader="a")
    scene.says("b", term=2, leader="b")
    assert scene.found("two leaders in term 2")


def test_a_term_that_two_lives_of_one_node_lead() -> None:
    scene = Scene("a")
    scene.says("a", term=2, leader="a")
    scene.restart("a")
    scene.says("a", term=2, leader="a")
    assert scene.cluster.violations == []
    scene.logged("a", HardState(term=2).log_record(1))
    scene.restart("a")
    scene.says("a", term=2, leader="a")
    assert scene.found("two leaders in term 2")


def test_a_term_that_goes_back() -> None:
    scene = Scene("a")
    scene.says("a", term=5)
    scene.says("a", term=4)
    assert scene.found("went back from term 5 to 4")


def test_two_entries_of_one_place() -> None:
    scene = Scene("a", "b")
    scene.entry("a", 2, 1, b"x")
    scene.entry("b", 2, 1, b"y")
    assert scene.found("log matching", "entry 2 of term 1")


def test_one_entry_after_two_different_ones() -> None:
    scene = Scene("a", "b")
    scene.entry("a", 2, 1)
    scene.entry("a", 3, 2)
    scene.entry("b", 2, 2)
    scene.entry("b", 3, 2)
    assert scene.found("log matching", "follows term")


def test_two_entries_committed_at_one_index() -> None:
    scene = Scene("a", "b")
    scene.entry("a", 2, 1)
    scene.says("a", term=1, leader="a", committed=2)
    scene.entry("b", 2, 2)
    scene.says("b", term=2, committed=2)
    assert scene.found("two entries are committed at 2")


def test_what_is_truncated_in_memory_alone_is_not_taken_for_committed() -> None:
    scene = Scene("a", "b")
    scene.entry("a", 2, 2)
    scene.says("a", term=2, leader="a", committed=2)
    scene.entry("b", 2, 1)
    scene.truncated.add(("b", 2))
    scene.says("b", term=2, leader="a", committed=2)
    assert scene.cluster.violations == []


def test_a_leader_without_what_was_committed() -> None:
    scene = Scene("a", "b")
    scene.entry("a", 2, 1)
    scene.says("a", term=1, leader="a", committed=2)
    scene.says("b", term=2, leader="b")
    assert scene.found("leader completeness", "without entry 2")


def test_a_leader_need_not_hold_what_a_later_term_committed() -> None:
    scene = Scene("a", "b")
    scene.entry("a", 2, 1)
    scene.says("a", term=3, leader="a", committed=2)
    scene.says("b", term=2, leader="b")
    assert scene.cluster.violations == []


def test_a_committed_entry_that_is_truncated() -> None:
    scene = Scene("a")
    scene.entry("a", 2, 1)
    scene.says("a", term=1, leader="a", committed=2)
    scene.cut("a", 2)
    assert scene.found("truncated entry 2")


def test_states_that_differ_at_one_entry() -> None:
    scene = Scene("a", "b")
    scene.apply("a", 3, 1, b"v")
    scene.apply("b", 3, 1, b"w")
    assert scene.found("states differ at entry 3")


def test_an_applied_index_that_goes_back() -> None:
    scene = Scene("a")
    scene.apply("a", 3, 1)
    scene.apply("a", 2, 1)
    assert scene.found("went back from applied 3 to 2")


def test_a_member_change_that_was_rolled_back_is_counted() -> None:
    scene = Scene("a")
    scene.entry("a", 2, 1, payload=Configuration(("a",)))
    scene.entry("a", 2, 2, b"another")
    assert scene.cluster.counts["member changes rolled back"] == 1
