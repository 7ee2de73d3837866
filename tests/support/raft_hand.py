"""Replicas of one group, moved by hand: every message is seen, and delivered, kept back or dropped by the test.

::

    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send_all()             -> group.mail
    group.deliver(to="n2")
    group.sync("n2")             its log files catch up
    group.apply("n2")            and committed entries are applied to its data
    group.store("n2")            both
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.group import RaftLog
from cortado.raft.log import Encoded, Entry, SnapshotMeta
from cortado.raft.records import HardState, Writes
from cortado.raft.registry import Member, Roster
from cortado.raft.settings import RaftSettings
from support.raft_disks import GROUP, LogDisk

__all__ = ["GROUP", "Hand", "Letter", "members"]


def members(count: int) -> tuple[Member, ...]:
    return tuple(Member(f"n{i + 1}", f"host:{i + 1}", f"s{i + 1}", f"c:{i + 1}") for i in range(count))


class Letter:
    def __init__(self, sender: str, to: str, body: bytes) -> None:
        self.sender, self.to, self.body = sender, to, body
        self.message = pb.RaftMessage.FromString(body)
        self.kind = self.message.WhichOneof("kind")

    def __repr__(self) -> str:
        return f"{self.sender}->{self.to} {self.kind} of {self.message.term}"


class Hand:
    """``voters`` replicas with the same beginning: entry 2 of term 1 is applied everywhere."""

    def __init__(
        self, voters: int = 3, *, learners: int = 0, settings: RaftSettings | None = None, now_ms: float = 0.0
    ) -> None:
        everyone = members(voters + learners)
        self.settings = settings if settings is not None else RaftSettings()
        self.now_ms = now_ms
        self.lives = 0
        self.joined: dict[str, Roster] = {}
        self.mail: list[Letter] = []
        self.logs: dict[str, RaftLog] = {}
        self.disks: dict[str, LogDisk] = {}
        self.applied: dict[str, list[Entry]] = {}
        self.outstanding: dict[str, Writes] = {}
        self.applying: dict[str, Sequence[Entry]] = {}
        configuration = Roster.of(everyone[:voters], everyone[voters:])
        for member in everyone:
            self.disks[member.node_id] = LogDisk(HardState(1, "", 2, 1, configuration).log_record(GROUP))
            self.applied[member.node_id] = []
            self.start(member.node_id)

    # --- replicas ---------------------------------------------------------------------------------------------------

    def place(self, node_id: str) -> tuple[int, int]:
        applied = self.applied[node_id]
        return (
            (applied[-1].index, applied[-1].term) if applied else ((2, 1) if self.disks[node_id].hard_state else (0, 0))
        )

    def start(self, node_id: str) -> RaftLog:
        """Start a replica from its disk; writes that were not stored, or not applied, are lost."""
        self.lose(node_id)
        self.lives += 1
        self.logs[node_id] = RaftLog(
            node_id,
            self.settings,
            group_id=GROUP,
            random=random.Random(f"{node_id} {self.lives}"),
            stored=self.disks[node_id].stored(),
            applied=self.place(node_id),
            now_ms=self.now_ms,
            joined=self.joined.get(node_id),
        )
        return self.logs[node_id]

    def add_empty(self, node_id: str) -> RaftLog:
        """Start an empty member that knows the members of the longest log."""
        furthest = max(self.logs.values(), key=lambda log: log.last)
        self.joined[node_id] = furthest.roster
        self.disks[node_id], self.applied[node_id] = LogDisk(), []
        return self.start(node_id)

    def append(self, node_id: str, body: bytes) -> Entry:
        return self.logs[node_id].append(Encoded(body))

    def lose(self, node_id: str) -> None:
        """Lose the writes on their way to the log files or to the data."""
        self.outstanding.pop(node_id, None)
        self.applying.pop(node_id, None)

    def take(self, node_id: str) -> Writes:
        """Take its writes, which stay outstanding until :meth:`sync`."""
        writes = self.logs[node_id].storing.ready()
        if writes:
            self.outstanding[node_id] = writes
        return writes

    def take_committed(self, node_id: str) -> Sequence[Entry]:
        """Take entries to apply, which stay outstanding until :meth:`apply`."""
        entries = self.logs[node_id].applying.take()
        if entries:
            self.applying[node_id] = entries
        return entries

    def sync(self, node_id: str) -> bool:
        """Make all writes for its log files durable. Returns whether there were any."""
        is_any = False
        while self.outstanding.get(node_id) or self.take(node_id):
            writes = self.outstanding.pop(node_id)
            self.write(node_id, writes)
            self.logs[node_id].synced(writes)
            is_any = True
        return is_any

    def apply(self, node_id: str) -> bool:
        """Make all entries that may be applied durable in its data. Returns whether there were any."""
        is_any = False
        while self.applying.get(node_id) or self.take_committed(node_id):
            entries = self.applying.pop(node_id)
            self.applied[node_id] += entries
            self.logs[node_id].applying.applied(entries)
            is_any = True
        return is_any

    def store(self, node_id: str) -> None:
        """Let its log files and its data catch up."""
        while self.sync(node_id) or self.apply(node_id):
            """New writes that follow from it are stored, too."""

    def write(self, node_id: str, writes: Writes) -> None:
        self.disks[node_id].write(writes)

    def install(self, node_id: str, meta: SnapshotMeta, applied: Sequence[Entry]) -> None:
        """Install a snapshot: the state after ``applied`` takes the place of the data, and the log follows."""
        log = self.logs[node_id]
        writes = log.window.install(meta)
        self.applied[node_id] = list(applied)
        self.write(node_id, writes)
        log.window.installed(meta)

    # --- time and messages ------------------------------------------------------------------------------------------

    def pass_ms(self, duration_ms: float, *who: str) -> None:
        """Time goes by for everyone, and those named (or all) notice."""
        self.now_ms += duration_ms
        for node_id in who or self.logs:
            self.logs[node_id].tick(self.now_ms)

    def send(self, node_id: str) -> list[Letter]:
        """Put the messages that may leave a replica now into the mail."""
        letters = [Letter(node_id, each.to, each.body) for each in self.logs[node_id].outbox()]
        self.mail += letters
        return letters

    def send_all(self) -> list[Letter]:
        return [letter for node_id in list(self.logs) for letter in self.send(node_id)]

    def step(self, letter: Letter) -> None:
        if letter.to in self.logs:
            self.logs[letter.to].step(letter.sender, letter.body)

    def forge(self, sender: str, to: str, **message: object) -> None:
        """Deliver to ``to`` a message that ``sender`` never sent."""
        self.logs[to].step(sender, pb.RaftMessage(**message).SerializeToString())  # type: ignore[arg-type]

    def deliver(self, *, sender: str = "", to: str = "", kind: str = "") -> int:
        """Deliver the mail that fits; the rest stays."""
        fits = [each for each in self.mail if _fits(each, sender, to, kind)]
        self.mail = [each for each in self.mail if each not in fits]
        for letter in fits:
            self.step(letter)
        return len(fits)

    def keep(self, *, sender: str = "", to: str = "", kind: str = "") -> list[Letter]:
        """Take letters out of the mail: late ones, to be stepped later."""
        kept = [each for each in self.mail if _fits(each, sender, to, kind)]
        self.mail = [each for each in self.mail if each not in kept]
        return kept

    def settle(self, *, without: tuple[str, ...] = (), drops: Callable[[Letter], bool] = lambda _: False) -> None:
        """Store and deliver everything until nothing is left; nothing reaches or leaves those in ``without``."""
        while True:
            for node_id in self.logs:
                if node_id not in without:
                    self.logs[node_id].tick(self.now_ms)
                    self.send(node_id)
                    self.store(node_id)
                    self.send(node_id)
            self.mail = [
                each for each in self.mail if each.sender not in without and each.to not in without and not drops(each)
            ]
            if not self.deliver():
                return

    def run(self, duration_ms: float, *, without: tuple[str, ...] = (), step_ms: float = 50.0) -> None:
        for _ in range(int(duration_ms / step_ms)):
            self.now_ms += step_ms
            self.settle(without=without)

    def elect(self, node_id: str, *, without: tuple[str, ...] = ()) -> RaftLog:
        """Let ``node_id`` lead: it alone notices that there is no leader. Those in ``without`` hear nothing of it."""
        log = self.logs[node_id]
        self.now_ms += 2 * self.settings.election_ms_max
        for other in self.logs:
            if other != node_id and other not in without:
                self.logs[other].may_lead = False
        self.settle(without=without)
        for _ in range(100):
            if log.is_leader:
                break
            self.now_ms += 50
            self.settle(without=without)
        for each in self.logs.values():
            each.may_lead = True
        assert log.is_leader, f"{node_id} was not elected"
        return log

    def offer(self, node_id: str, meta: SnapshotMeta, sender: str, term: int) -> None:
        """Deliver a leader's word of a snapshot to a replica."""
        notice = pb.SnapshotNotice(
            snapshot_id=meta.snapshot_id,
            index=meta.index,
            term=meta.term,
            roster=meta.roster.to_message(),
        )
        self.logs[node_id].step(sender, pb.RaftMessage(term=term, snapshot=notice).SerializeToString())


def _fits(letter: Letter, sender: str, to: str, kind: str) -> bool:
    return sender in ("", letter.sender) and to in ("", letter.to) and kind in ("", letter.kind)
