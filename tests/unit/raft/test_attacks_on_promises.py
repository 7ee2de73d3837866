"""Executions that were constructed to break what a group of replicas promises: each must fail to."""

from __future__ import annotations

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import SnapshotMeta
from support.raft_hand import Hand


# --- how fresh a replica is, over a restart of its host --------------------------------------------------------------


def _rebooted(group: Hand, node_id: str, now_ms: float) -> None:
    """The process begins again, on a host whose monotonic clock does, too."""
    before_ms, group.now_ms = group.now_ms, now_ms
    group.start(node_id)
    group.now_ms = before_ms


def test_a_time_of_an_earlier_boot_does_not_make_a_replica_fresh() -> None:
    group = Hand(3, now_ms=10_000_000.0)
    group.elect("n1")
    group.run(500)
    assert group.logs["n2"].fresh_as_of_ms is not None
    _rebooted(group, "n2", 5_000.0)
    # The leader gives back what it was told by the life before.
    group.pass_ms(100, "n1", "n3")
    group.send("n1")
    (letter,) = [each for each in group.keep(to="n2") if each.message.fresh_index]
    assert letter.message.echo_ms > 9_000_000
    group.step(letter)
    fresh_ms = group.logs["n2"].fresh_as_of_ms
    assert fresh_ms is None or fresh_ms <= 5_000.0


# --- a snapshot of a term that was not entered yet -------------------------------------------------------------------


def test_a_term_never_falls_behind_that_of_an_installed_snapshot() -> None:
    group = Hand(3)
    log = group.logs["n2"]
    meta = SnapshotMeta("s", 50, 5, log.configuration, 1)
    group.write("n2", log.install(meta))
    log.installed(meta)
    assert log.term == 5
    # A candidate of long ago comes late. Its term must not be stored over the log's.
    group.now_ms += 5_000
    log.tick(group.now_ms)
    late = pb.VoteRequest(term=4, last_index=2, last_term=1)
    log.step("n3", pb.RaftMessage(term=4, vote_request=late).SerializeToString())
    ready = log.ready()
    group.write("n2", ready.writes)
    group.applied["n2"] = []
    from cortado.raft.records import decode_stored

    stored = decode_stored(1, sorted(group.disks["n2"].items()))
    assert stored.hard_state.term >= 5


# --- a group that shrinks --------------------------------------------------------------------------------------------


def test_a_leader_that_dies_while_it_removes_the_only_other_voter_comes_back() -> None:
    group = Hand(2)
    group.elect("n1")
    group.settle()
    group.logs["n1"].remove("n2")
    group.pass_ms(0, "n1")
    group.send("n1")
    group.deliver(to="n2")
    group.store("n2")
    group.mail.clear()
    # Its own disk never heard of the change.
    group.start("n1")
    group.run(20_000)
    assert any(log.is_leader for log in group.logs.values())
