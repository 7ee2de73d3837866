"""PySyncObj as a consensus engine without I/O. The only file that knows it, and touches its private names.

A private copy of ``pysyncobj.syncobj`` is loaded, so that nothing here changes the module for anyone else in the
process, and its seams are replaced in that copy:

====================== ============================================================================================
``createJournal``      our journal comes in as the configuration's journal file (syncobj.py:166)
``createPoller``       polls nothing (syncobj.py:205, 706)
``Serializer``         never serializes, never transmits: snapshots are ours (syncobj.py:198, 1310, 1423)
``monotonicTime``      the time that we gave it last, so that nothing happens between two calls
``random``             the adapter owns the election timer (syncobj.py:1111)
``pickle``             each use raises: nothing is ever pickled (syncobj.py:894, 977, 1276)
``PIPE_NOTIFIER_...``  no pipe to wake a loop that is not there (syncobj.py:263)
``globalDnsResolver``  resolves nothing (syncobj.py:196)
====================== ============================================================================================

PySyncObj decides here: its term and vote, the leader, which entries are appended and truncated, how far each member has
acknowledged, the commit index. The adapter around this file keeps from it all that it must never be trusted with;
``docs/adr/0008-raft-over-pysyncobj.md`` lists it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final, Self

from pysyncobj.config import SyncObjConf
from pysyncobj.node import Node
from pysyncobj.version import VERSION

from cortado.raft.journal import Journal
from cortado.raft.records import ENGINE_NO_OP, Record

REQUIRED_VERSION: Final = "0.3.17"
if VERSION != REQUIRED_VERSION:
    raise ImportError(f"cortado.raft works with pysyncobj {REQUIRED_VERSION} alone, but {VERSION} is installed")

FOLLOWER, CANDIDATE, LEADER = 0, 1, 2
# Longer than any process lives, in seconds: the adapter decides when to campaign.
_NEVER_S: Final = 1e12


class _Time(threading.local):
    """The engines of a thread share it: each sets it on every entry."""

    now_s: float = 0.0


_TIME: Final = _Time()


class _NoPoller:
    def poll(self, timeout: float) -> None:
        """Nothing to wait for."""


class _NoSerializer:
    """Answers syncobj.py:1310 (``getTransmissionData``) and 1423 (``checkSerializing``)."""

    def __init__(self, *_: object) -> None:
        """There is nothing to configure."""

    def checkSerializing(self) -> tuple[int, None]:
        return 0, None  # NOT_SERIALIZING

    def getTransmissionData(self, _: object) -> None:
        """Nothing to transmit."""

    def cancelTransmisstion(self, _: object) -> None:
        """Nothing to cancel."""


class _NoPickle:
    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"PySyncObj reached for pickle.{name}: nothing is ever pickled")


class _NoRandom:
    def random(self) -> float:
        return 0.0


class _NoResolver:
    def setTimeouts(self, *_: object) -> None:
        """There are no names to resolve."""

    def setPreferredAddrFamily(self, *_: object) -> None:
        """There are no names to resolve."""


def _load_private_copy() -> ModuleType:
    spec = importlib.util.find_spec("pysyncobj.syncobj")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    seams: dict[str, object] = {
        "createJournal": lambda journal: journal,
        "createPoller": lambda _: _NoPoller(),
        "Serializer": _NoSerializer,
        "monotonicTime": partial(getattr, _TIME, "now_s"),
        "random": _NoRandom(),
        "pickle": _NoPickle(),
        "PIPE_NOTIFIER_ENABLED": False,
        "globalDnsResolver": _NoResolver,
    }
    for name, replacement in seams.items():
        if not hasattr(module, name):
            raise ImportError(
                f"pysyncobj.syncobj has no {name}: it is not the module that cortado.raft was written for"
            )
        setattr(module, name, replacement)
    return module


_SYNCOBJ: Final = _load_private_copy()


class _Peer(int, Node):  # type: ignore[misc]
    """A node as a number. Its hash is the same in every process, so the order of PySyncObj's sets of nodes is, too,
    and costs no call."""

    def __new__(cls, node_id: str) -> Self:
        return super().__new__(cls, int.from_bytes(b"\1" + node_id.encode()))

    def __init__(self, node_id: str) -> None:
        Node.__init__(self, node_id)


_NOBODY: Final = _Peer("")
Sent = Mapping[str, Any]


class _Transport:
    """The network as PySyncObj sees it: hands each outgoing message to the adapter."""

    ready = True

    def __init__(self) -> None:
        self.on_send: Callable[[str, Sent], None] = lambda _to, _message: None
        self.receive: Callable[[Node, Sent], None] = lambda _from, _message: None

    def setOnMessageReceivedCallback(self, callback: Callable[[Node, Sent], None]) -> None:
        self.receive = callback

    def setOnNodeConnectedCallback(self, _: object) -> None:
        """Ignore the callback: connected members are set directly."""

    setOnNodeDisconnectedCallback = setOnNodeConnectedCallback
    setOnReadonlyNodeConnectedCallback = setOnNodeConnectedCallback
    setOnReadonlyNodeDisconnectedCallback = setOnNodeConnectedCallback

    def setOnUtilityMessageCallback(self, _name: str, _callback: object) -> None:
        """Utility messages do not exist here."""

    def send(self, node: Node, message: Sent) -> None:
        self.on_send(node.id, message)


class Engine:
    """One replica's PySyncObj. Times are milliseconds outside and seconds inside.

    ``on_send`` is called, in the middle of PySyncObj's own loops, with each message that it wants sent:
    ``request_vote``, ``response_vote``, ``append_entries``, ``next_node_idx``.
    """

    def __init__(
        self,
        node_id: str,
        journal: Journal,
        *,
        applied_index: int,
        heartbeat_ms: float,
        fallback_ms: float,
        batch_bytes: int,
        now_ms: float,
    ) -> None:
        """``fallback_ms`` without a majority end a leadership. ``batch_bytes`` must be above every entry's size: from
        there on PySyncObj pickles chunks (syncobj.py:1275)."""
        self._transport = _Transport()
        self._nodes: dict[str, _Peer] = {}
        self._journal = journal
        self.role = FOLLOWER
        """FOLLOWER, CANDIDATE or LEADER; PySyncObj tells each change as it makes it (syncobj.py:1239)."""
        self.on_role: Callable[[int], None] = lambda _role: None
        """Hears each change of :attr:`role`."""
        self.set_time(now_ms)
        conf = SyncObjConf(
            autoTick=False,
            # The adapter says when entries are sent: once a round, not at each of its appends and commits.
            appendEntriesUseBatch=True,
            appendEntriesPeriod=heartbeat_ms / 1000,
            appendEntriesBatchSizeBytes=batch_bytes,
            commandsQueueSize=0,
            commandsWaitLeader=False,
            connectionTimeout=2 * _NEVER_S,
            dynamicMembershipChange=False,
            fullDumpFile=None,
            journalFile=journal,
            leaderFallbackTimeout=fallback_ms / 1000,
            logCompactionMinEntries=sys.maxsize,
            logCompactionMinTime=2 * _NEVER_S,
            onStateChanged=self._entered,
            raftMinTimeout=_NEVER_S,
            raftMaxTimeout=2 * _NEVER_S,
        )
        self._sync = _SYNCOBJ.SyncObj(self._node(node_id), (), conf=conf, transport=self._transport)
        self._receive = self._transport.receive
        # syncobj.py:177 starts every process at entry 1, and would apply the log again from there.
        self._sync._SyncObj__raftLastApplied = applied_index

    @property
    def on_send(self) -> Callable[[str, Sent], None]:
        return self._transport.on_send

    @on_send.setter
    def on_send(self, callback: Callable[[str, Sent], None]) -> None:
        self._transport.on_send = callback

    # --- its state -------------------------------------------------------------------------------------------------

    @property
    def term(self) -> int:
        return self._journal.term

    @property
    def leader(self) -> str:
        node = self._sync._SyncObj__raftLeader
        return "" if node is None else str(node.id)

    def next_index(self, node_id: str) -> int:
        """Return the entry that a leader will send to a member next."""
        index: int = self._sync._SyncObj__raftNextIndex[self._nodes[node_id]]
        return index

    # --- time and members --------------------------------------------------------------------------------------------

    def set_time(self, now_ms: float) -> None:
        """To be called before every entry: PySyncObj sees no other clock."""
        _TIME.now_s = now_ms / 1000

    def tick(self) -> None:
        """At a leader: advance the commit index, fall back without a majority, send messages that are due. Elsewhere
        time changes nothing, and PySyncObj's applied index follows its commit index."""
        sync = self._sync
        if sync._SyncObj__raftState == LEADER:
            sync._onTick(0.0)
        else:
            sync._SyncObj__raftLastApplied = sync._SyncObj__raftCommitIndex

    def set_members(self, voters: Iterable[str], learners: Iterable[str]) -> None:
        """Set the other members of the group. Learners are sent entries, and not counted.

        PySyncObj's own membership changes stay off: their guard is dead code, and their rollback forgets
        (syncobj.py:1357, 1374). A new member's places in the tables are filled in as syncobj.py:1220 does.
        """
        sync = self._sync
        sync._SyncObj__otherNodes = {self._node(each) for each in voters}
        sync._SyncObj__readonlyNodes = {self._node(each) for each in learners}
        members = sync._SyncObj__otherNodes | sync._SyncObj__readonlyNodes
        for table, start in (
            (sync._SyncObj__raftNextIndex, self._journal.last_index),
            (sync._SyncObj__raftMatchIndex, 0),
            (sync._SyncObj__lastResponseTime, _TIME.now_s),
        ):
            for gone in [each for each in table if each not in members]:
                del table[gone]
            for member in members:
                table.setdefault(member, start)
        sync._SyncObj__connectedNodes &= members

    def connect(self, node_id: str) -> None:
        """Let a leader send entries to a member, from :meth:`next_index` on."""
        self._sync._SyncObj__connectedNodes.add(self._nodes[node_id])

    def disconnect(self, node_id: str) -> None:
        """Stop sending entries to a member, also in the middle of :attr:`on_send` (syncobj.py:1295, 1307)."""
        self._sync._SyncObj__connectedNodes.discard(self._nodes[node_id])

    def disconnect_all(self) -> None:
        self._sync._SyncObj__connectedNodes.clear()

    # --- elections ---------------------------------------------------------------------------------------------------

    def campaign(self) -> None:
        """Begin a term and ask for votes; alone, win at once. The timer's deadline is the way in (syncobj.py:635)."""
        others = self._sync._SyncObj__otherNodes
        # syncobj.py:635 campaigns only if a member is connected. None may be when the election is won: the entries that
        # a leader sends at once (syncobj.py:1230) would go past the windows that do not exist yet.
        self._sync._SyncObj__connectedNodes |= others
        self._sync._SyncObj__raftElectionDeadline = -_NEVER_S
        self._sync._onTick(0.0)
        self._sync._SyncObj__connectedNodes.clear()

    def step_down(self, term: int) -> None:
        """Enter a higher term without a vote: a request for one that no log can lose to (syncobj.py:920)."""
        self._receive(_NOBODY, {"type": "request_vote", "term": term, "last_log_index": -1, "last_log_term": -1})
        self.disconnect_all()

    def request_vote(self, sender: str, term: int, last_index: int, last_term: int) -> None:
        """A candidate's request. Grants by sending ``response_vote``, refuses by silence (syncobj.py:925)."""
        message = {"type": "request_vote", "term": term, "last_log_index": last_index, "last_log_term": last_term}
        self._receive(self._node(sender), message)

    def grant_vote(self, sender: str) -> None:
        """One voter's vote in the current term. PySyncObj counts messages: give each once (syncobj.py:1065)."""
        self._receive(self._node(sender), {"type": "response_vote", "term": self.term})

    # --- the log -----------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Append at the leader. Through PySyncObj's queue and out again: syncobj.py:492, 503."""
        self._sync._applyCommand(record, None)
        self._sync._checkCommandsToApply()

    def receive_entries(self, leader: str, prev: tuple[int, int], records: Sequence[Record], commit_index: int) -> None:
        """Take a leader's entries of the current term, directly after ``prev``, which is held. PySyncObj deletes every
        entry behind ``prev`` (syncobj.py:1004), believes ``commit_index`` up to its last entry, and answers with a
        message that proves nothing."""
        message = {
            "type": "append_entries",
            "term": self.term,
            "commit_index": commit_index,
            "prevLogIdx": prev[0],
            "prevLogTerm": prev[1],
            "entries": [(each, each.index, each.term) for each in records],
        }
        self._receive(self._node(leader), message)

    def acknowledge(self, node_id: str, matched_index: int) -> None:
        """Record that a member is alive, and durably holds our entries up to ``matched_index`` (0: no news).

        syncobj.py:1082 sets the next index back to the acknowledged one; here it never falls.
        """
        node = self._nodes[node_id]
        next_index = self._sync._SyncObj__raftNextIndex[node]
        message = {
            "type": "next_node_idx",
            "reset": False,
            "success": matched_index > 0,
            "next_node_idx": matched_index + 1,
        }
        self._receive(node, message)
        self._sync._SyncObj__raftNextIndex[node] = max(next_index, matched_index + 1 if matched_index else 0)

    def set_next_index(self, node_id: str, index: int) -> None:
        """Send to a member from ``index`` on."""
        self._sync._SyncObj__raftNextIndex[self._nodes[node_id]] = index

    def send_entries(self) -> None:
        """Send connected members the entries that they lack, now and not at the next heartbeat (syncobj.py:1251)."""
        self._sync._SyncObj__sendAppendEntries()

    def set_applied(self, index: int, *, commit_index: int) -> None:
        """Go on from ``index``: a snapshot brought us there, or a withdrawal back to there."""
        self._sync._SyncObj__raftCommitIndex = self._journal.commit_index = commit_index
        self._sync._SyncObj__raftLastApplied = index

    # --- inside ------------------------------------------------------------------------------------------------------

    def _entered(self, _before: int, role: int) -> None:
        self.role = role
        self.on_role(role)

    def _node(self, node_id: str) -> _Peer:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Peer(node_id)
        return node


assert ENGINE_NO_OP[0] == _SYNCOBJ._COMMAND_TYPE.NO_OP
