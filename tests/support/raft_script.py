"""Runs a script over a group of logs and records the events: text in, text out.

A transcript holds three kinds of lines. Lines that begin with ``#`` teach. Lines that begin in the first column are
commands.
Indented lines are the effect of the command; only they are written anew when a transcript is rendered::

    # n1 asks first whether it could win.
    tick n1 600
      n1 -> n2  pre-vote for term 2? my log ends at 2@1

Each line of the output begins with the replica that does something: ``n1 -> n2`` sends, ``n2 <- n1`` receives. Nothing
happens by itself: time passes by ``tick``, a message arrives by ``deliver``, a disk keeps something by ``store``. Only
the logs are real (:mod:`support.raft_hand`), and their random times are the same in every run.

====================================  ==================================================================================
``group N [SETTING=VALUE ...]``       N voters, n1 to nN, whose logs begin behind the same entry, 2@1
``tick [NODE ...] MS``                the time passes for all; those named, or all, notice
``run MS``                            the time passes in steps of 50 ms; all messages arrive, all disks keep up
``settle``                            the same until nothing is left to do, and no time passes
``campaign NODE``                     NODE alone campaigns, until it leads: its messages are then in the mail
``elect NODE``                        the same, and ``settle``: its first entry is committed
``propose NODE VALUE ...``            append; ``examine NODE VALUE`` lets followers examine it before they keep it
``deliver [FROM -> TO [KIND]]``       the mail arrives; ``*`` is any replica; KIND is ``vote`` or its ``reply``,
                                      ``append`` or its ``answer``, ``heartbeat``, ``handover``, ``snapshot``
``drop [FROM -> TO [KIND]]``          it is lost; ``hold`` keeps it back until ``release``
``cut NODE``, ``heal NODE``           everything to and from NODE is lost, from now on
``store [NODE ...]``                  disks catch up, and committed entries are applied
``sync [NODE ...]``                   log files catch up, and nothing is applied; ``apply [NODE ...]`` applies it
``crash NODE``, ``start NODE``        only what is on its disk comes back
``read NODE``                         a linearizable read begins
``announce LEADER NODE``              add it as a learner; ``join NODE`` starts it empty, ``bind LEADER NODE`` binds its
                                      data directory
``promote LEADER NODE``               make it a voter; ``remove LEADER NODE`` removes a member
``transfer LEADER NODE``              hand leadership over
``compact NODE INDEX``                entries up to INDEX may go
``offer LEADER NODE``                 say that a snapshot can be fetched; ``fetch NODE`` installs it
``forge FROM -> TO KIND TERM``        a message that a log of FROM never sent: ``heartbeat``, ``vote``, ``pre-vote``
``doubt NODE [KEY]``                  NODE doubts examined entries: the leader lost KEY, or NODE itself lacks something
``trust NODE``, ``disown NODE``       NODE doubts no more; NODE gives up the entries of its own that others doubt
``show [NODE ...]``                   the knowledge of replicas
====================================  ==================================================================================

Before a command, ``quietly`` leaves out messages and disks: only changes of the replicas are shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from cortado.errors import CortadoError, DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.group import RaftLog
from cortado.raft.log import Doubt, Encoded, Entry, SnapshotMeta
from cortado.raft.records import Writes
from cortado.raft.registry import Member
from cortado.raft.settings import RaftSettings
from support.raft_hand import Hand, Letter
from support.raft_words import View, message_words, place_words, writes_words

_ROUNDS_MAX = 100
# The script's names for the kinds of messages.
_KINDS = {
    "vote": "vote_request",
    "reply": "vote_response",
    "append": "append",
    "heartbeat": "heartbeat",
    "answer": "acknowledgement",
    "handover": "timeout_now",
    "snapshot": "snapshot",
}


def render(text: str) -> str:
    """Return the transcript ``text`` with the output that its commands have now. Raises ValueError, naming the line of
    a command that cannot be run."""
    warned: list[str] = []
    handler = _Warnings(warned)
    logger = logging.getLogger("cortado.raft")
    logger.addHandler(handler)
    scene: Scene | None = None
    lines: list[str] = []
    try:
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith(" "):
                continue
            lines.append(line)
            if line and not line.startswith("#"):
                try:
                    scene = _run(line, scene, warned)
                except KeyError as error:
                    raise ValueError(f"line {number}, {line!r}: there is no {error}, or it is down") from error
                except (TypeError, ValueError) as error:
                    raise ValueError(f"line {number}, {line!r}: {error}") from error
                lines += scene.said()
    finally:
        logger.removeHandler(handler)
    return "\n".join(lines) + "\n"


def _run(line: str, scene: Scene | None, warned: list[str]) -> Scene:
    name, *words = line.split()
    if name in ("group", "quietly") and not words:
        raise ValueError(f"{name} what?")
    if name == "group":
        settings = {key: int(value) for key, value in (each.split("=") for each in words[1:])}
        return Scene(int(words[0]), RaftSettings(**settings), warned)
    if scene is None:
        raise ValueError("a script begins with a group")
    if name == "quietly":
        scene.run_command(words[0], words[1:], is_quiet=True)
    else:
        scene.run_command(name, words, is_quiet=False)
    return scene


class _Warnings(logging.Handler):
    """Gathers a log's warnings, so that the replica that received a message can be shown to give them."""

    def __init__(self, warned: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._warned = warned

    def emit(self, record: logging.LogRecord) -> None:
        self._warned.append(record.getMessage())


class Scene(Hand):
    """A group moved by hand that writes down every move."""

    def __init__(self, voters: int, settings: RaftSettings, warned: list[str]) -> None:
        if voters < 1:
            raise ValueError("a group has a voter at least")
        self._lines: list[str] = []
        self._warned = warned
        self._is_quiet = False
        self._views: dict[str, View] = {}
        self._cut: set[str] = set()
        self._held: list[Letter] = []
        self._proposed: dict[str, list[Entry]] = {}
        self._reads: dict[str, list[tuple[int, int, int]]] = {}
        self._offered = 0
        super().__init__(voters, settings=settings)
        self._say(" ".join(self.logs), "are the voters, in term 1; the log of each begins behind 2@1")

    def run_command(self, name: str, words: Sequence[str], *, is_quiet: bool) -> None:
        command: Callable[..., None] | None = getattr(self, f"_do_{name}", None)
        if command is None:
            raise ValueError(f"there is no command {name}")
        self._is_quiet = is_quiet
        try:
            command(*words)
        except CortadoError as error:
            self._lines.append(f"  refused: {type(error).__name__}: {error}")
        self._end_rounds()
        self._is_quiet = False
        for node_id in sorted(self.logs) if is_quiet else ():
            self._notice_in_brief(node_id)

    def _end_rounds(self) -> None:
        """End each node's round with a tick that takes no time: a leader counts the answers that it got."""
        for node_id, log in self.logs.items():
            log.tick(log._core.now_ms)
            self.send(node_id)

    def said(self) -> list[str]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines

    # --- writing down -------------------------------------------------------------------------------------------------

    def _say(self, who: str, words: str) -> None:
        self._lines.append(f"  {who:<8}  {words}")

    def _say_unless_quiet(self, who: str, words: str) -> None:
        if not self._is_quiet:
            self._say(who, words)

    def _notice(self, node_id: str) -> None:
        """Write down the changes at a replica, and the answers for its callers."""
        if self._is_quiet or node_id not in self.logs:
            return
        before, now = self._views[node_id], View.of(node_id, self.logs[node_id])
        self._views[node_id] = now
        for words in before.changes_to(now):
            self._say(node_id, words)
        self._answer(node_id, self.logs[node_id])

    def _notice_in_brief(self, node_id: str) -> None:
        before, now = self._views.get(node_id), View.of(node_id, self.logs[node_id])
        self._views[node_id] = now
        if before is None or before.brief() != now.brief():
            self._say(node_id, now.brief())
        for words in before.snapshots_changed(now) if before is not None else ():
            self._say(node_id, words)
        self._answer(node_id, self.logs[node_id])

    def _answer(self, node_id: str, log: RaftLog) -> None:
        leads = log.leader == node_id
        for entry in self._proposed.pop(node_id, []):
            if not leads or entry.term != log.term:
                self._say(node_id, f"tells the caller: the outcome of {_value(entry)} is unknown")
            elif entry.index <= log.durable_commit_index:
                self._say(node_id, f"tells the caller: {_value(entry)} is written")
            else:
                self._proposed.setdefault(node_id, []).append(entry)
        for read in self._reads.pop(node_id, []):
            number, term, index = read
            if not leads or term != log.term:
                self._say(node_id, "tells the reader: ask another, leadership has ended")
            elif number <= log.confirmed_round:
                self._say(node_id, f"answers the reader from what is committed to {index}: round {number} is confirmed")
            else:
                self._reads.setdefault(node_id, []).append(read)

    # --- moves of a Hand, written down ------------------------------------------------------------------------------

    def start(self, node_id: str) -> RaftLog:
        log = super().start(node_id)
        self._views[node_id] = View.of(node_id, log)
        return log

    def send(self, node_id: str) -> list[Letter]:
        """Put outgoing messages into the mail in the order of the receivers, whatever their order in the log."""
        self._notice(node_id)
        in_mail = len(self.mail)
        letters = sorted(super().send(node_id), key=lambda letter: letter.to)
        self.mail[in_mail:] = letters
        for letter in letters:
            is_lost = self._is_lost(letter)
            if is_lost:
                self.mail.remove(letter)
            lost = "lost: " if is_lost else ""
            self._say_unless_quiet(f"{letter.sender} -> {letter.to}", f"{lost}{message_words(letter.message)}")
        return letters

    def _is_lost(self, letter: Letter) -> bool:
        return letter.sender in self._cut or letter.to in self._cut

    def step(self, letter: Letter) -> None:
        words = message_words(letter.message)
        if letter.to not in self.logs or self._is_lost(letter):
            self._say_unless_quiet(f"{letter.sender} -> {letter.to}", f"lost: {words}")
            return
        self._say_unless_quiet(f"{letter.to} <- {letter.sender}", words)
        self._warned.clear()
        try:
            super().step(letter)
        except DataLoss as error:
            self._say(letter.to, f"stops: {error}")
            self._do_crash(letter.to)
            return
        for warning in self._warned:
            self._say(letter.to, warning)
        self.send(letter.to)

    def write(self, node_id: str, writes: Writes) -> None:
        super().write(node_id, writes)
        if writes:
            self._say_unless_quiet(node_id, writes_words(writes))

    def store(self, node_id: str) -> None:
        super().store(node_id)
        self.send(node_id)

    def sync(self, node_id: str) -> bool:
        is_any = super().sync(node_id)
        if is_any:
            self.send(node_id)
        return is_any

    # --- commands: time, messages, disks ------------------------------------------------------------------------------

    def _do_tick(self, *words: str) -> None:
        *who, duration_ms = words
        self.pass_ms(float(duration_ms), *who)

    def _do_run(self, duration_ms: str) -> None:
        self.run(float(duration_ms))

    def _do_settle(self) -> None:
        for _ in range(_ROUNDS_MAX):
            if not self.deliver() and not any(self._has_work(node_id) for node_id in self.logs):
                return
            self._end_rounds()
            self._do_store()
            self._end_rounds()
        raise ValueError(f"after {_ROUNDS_MAX} rounds there is still something to do")

    def _has_work(self, node_id: str) -> bool:
        """Return whether its disk has something to store, or to apply."""
        log = self.logs[node_id]
        return log._core.journal.is_dirty or log.applying.backlog > 0

    def _do_campaign(self, node_id: str) -> None:
        """Campaign in steps, since the random times and the number of tries are unknown."""
        for other, log in self.logs.items():
            log.may_lead = other == node_id
        self.pass_ms(self.settings.election_ms_min)
        for _ in range(_ROUNDS_MAX):
            self.pass_ms(50, node_id)
            for kind in 2 * ("vote_request", "vote_response"):
                self._do_store()
                self.deliver(kind=kind)
            if self.logs[node_id].leader == node_id:
                break
        else:
            raise ValueError(f"{node_id} was not elected")
        for log in self.logs.values():
            log.may_lead = True

    def _do_elect(self, node_id: str) -> None:
        self._do_campaign(node_id)
        self._do_settle()

    def _which(self, sender: str, to: str, kind: str) -> dict[str, str]:
        """Return the mail that a command means."""
        for node_id in (sender, to):
            if node_id != "*" and node_id not in self.disks:
                raise KeyError(node_id)
        if kind and kind not in _KINDS:
            raise ValueError(f"no message is a {kind}: {', '.join(_KINDS)}")
        return {"sender": sender.strip("*"), "to": to.strip("*"), "kind": _KINDS.get(kind, "")}

    def _do_deliver(self, sender: str = "*", _arrow: str = "->", to: str = "*", kind: str = "") -> None:
        self.deliver(**self._which(sender, to, kind))

    def _do_drop(self, sender: str = "*", _arrow: str = "->", to: str = "*", kind: str = "") -> None:
        for letter in self.keep(**self._which(sender, to, kind)):
            self._say_unless_quiet(f"{letter.sender} -> {letter.to}", f"lost: {message_words(letter.message)}")

    def _do_hold(self, sender: str = "*", _arrow: str = "->", to: str = "*", kind: str = "") -> None:
        self._held += self.keep(**self._which(sender, to, kind))

    def _do_release(self) -> None:
        held, self._held = self._held, []
        self.mail += held

    def _do_cut(self, node_id: str) -> None:
        self._cut.add(node_id)

    def _do_heal(self, node_id: str) -> None:
        self._cut.remove(node_id)

    def _do_store(self, *who: str) -> None:
        for node_id in who or sorted(self.logs):
            self.store(node_id)

    def _do_sync(self, *who: str) -> None:
        for node_id in who or sorted(self.logs):
            self.sync(node_id)

    def _do_apply(self, *who: str) -> None:
        for node_id in who or sorted(self.logs):
            self.apply(node_id)
            self.send(node_id)

    def _do_crash(self, node_id: str) -> None:
        del self.logs[node_id]
        self.lose(node_id)
        for entry in self._proposed.pop(node_id, []):
            self._say(node_id, f"leaves its caller without an answer: the outcome of {_value(entry)} is unknown")
        self._reads.pop(node_id, None)

    def _do_start(self, node_id: str) -> None:
        self.start(node_id)
        self._do_show(node_id)

    def _do_show(self, *who: str) -> None:
        for node_id in who or sorted(self.logs):
            self._say(node_id, View.of(node_id, self.logs[node_id]).summary())

    # --- commands: callers --------------------------------------------------------------------------------------------

    def _do_propose(self, node_id: str, *values: str) -> None:
        for value in values:
            self._proposed.setdefault(node_id, []).append(self.append(node_id, value.encode()))

    def _do_examine(self, node_id: str, value: str) -> None:
        entry = self.logs[node_id].append(Encoded(value.encode()), is_examined=True)
        self._proposed.setdefault(node_id, []).append(entry)

    def _do_read(self, node_id: str) -> None:
        log = self.logs[node_id]
        self._reads.setdefault(node_id, []).append((log.read_round(), log.term, log.durable_commit_index))

    # --- commands: members and leadership -----------------------------------------------------------------------------

    def _do_announce(self, leader: str, node_id: str) -> None:
        self.logs[leader].members.add_learner(Member(node_id, _address(node_id)))

    def _do_join(self, node_id: str) -> None:
        self.add_empty(node_id)
        self._do_show(node_id)

    def _do_bind(self, leader: str, node_id: str) -> None:
        self.logs[leader].members.bind(
            Member(node_id, _address(node_id), f"s{node_id[1:]}", f"for-clients:{node_id[1:]}")
        )

    def _do_promote(self, leader: str, node_id: str) -> None:
        self.logs[leader].members.promote(node_id)

    def _do_remove(self, leader: str, node_id: str) -> None:
        self.logs[leader].members.remove(node_id)

    def _do_transfer(self, leader: str, to: str = "") -> None:
        self.logs[leader].transfer.begin(to)

    # --- commands: snapshots ------------------------------------------------------------------------------------------

    def _do_compact(self, node_id: str, index: str) -> None:
        self.logs[node_id].window.compact(int(index))

    def _do_offer(self, leader: str, to: str) -> None:
        log = self.logs[leader]
        index, term = log.applied
        self._offered += 1
        meta = SnapshotMeta(f"{leader}-{self._offered}", index, term, log.window.roster_at(index), 1)
        log.window.offer_snapshot(to, meta)

    def _do_fetch(self, node_id: str) -> None:
        """End an installation; its earlier steps do not concern the log."""
        offer = self.logs[node_id].window.snapshot_offer
        if offer is None:
            raise ValueError(f"nothing is offered to {node_id}")
        meta = offer.meta
        self._say(node_id, f"installs snapshot {meta.snapshot_id} of {place_words((meta.index, meta.term))}")
        self.install(node_id, meta, [each for each in self.applied[offer.sender] if each.index <= meta.index])

    # --- commands: errors ---------------------------------------------------------------------------------------------

    def _do_forge(self, sender: str, _arrow: str, to: str, kind: str, term: str) -> None:
        number = int(term)
        message = pb.RaftMessage(term=number)
        if kind == "heartbeat":
            message.heartbeat.round = 1
        elif kind not in ("vote", "pre-vote"):
            raise ValueError(f"{kind} cannot be forged")
        else:
            is_pre_vote = kind == "pre-vote"
            message.vote_request.CopyFrom(
                pb.VoteRequest(
                    term=number + is_pre_vote, is_pre_vote=is_pre_vote, last_index=99, last_term=min(number, 99)
                )
            )
        self.step(Letter(sender, to, message.SerializeToString()))

    def _do_doubt(self, node_id: str, key: str = "") -> None:
        def examine(_before: Sequence[Entry], entry: Entry) -> Doubt:
            return Doubt(entry.index, key.encode())

        self.logs[node_id].examine = examine

    def _do_trust(self, node_id: str) -> None:
        self.logs[node_id].examine = None

    def _do_disown(self, node_id: str) -> None:
        log = self.logs[node_id]
        for doubt in log.take_doubts():
            if not log.disown(doubt.index):
                self._say(node_id, f"keeps {doubt.index}: it is committed, or may be, or is gone")


def _value(entry: Entry) -> str:
    return f"{place_words((entry.index, entry.term))} {entry.payload.encode().decode()}"


def _address(node_id: str) -> str:
    return f"host:{node_id[1:]}"
