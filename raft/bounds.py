"""Bounds of the numbers in a peer's message. A number that no cluster can have reached is refused before it is stored.

Terms are the dangerous ones: a replica that hears of a higher term enters it, and keeps it for ever. Terms rise by one
with each election, and elections of one group hardly follow each other faster than every 200 ms. So a message may be
ahead of us by what 38 days of elections without a pause would bring: a node that was away comes back, and a term out of
thin air is not taken. (A replica that has never been in a term has nothing to compare with.)

Messages that contradict this replica's log are no matter of bounds (:mod:`~cortado.raft.disputes`).

A member whose log was taken out of bounds by an earlier build, or by an error on its disk, does not start:
``cortado recover --reset-term`` brings it back.
"""

from __future__ import annotations

import math
from typing import Final

from cortado.proto.internal import raft_pb2 as pb

# No counter that grows by one comes near it, and sums with it still fit 64 bits.
TERM_MAX: Final = 1 << 62
INDEX_MAX: Final = 1 << 62
TERM_AHEAD_MAX: Final = 1 << 24
SNAPSHOT_ID_LENGTH_MAX: Final = 128
SNAPSHOT_BYTES_MAX: Final = 1 << 50


def problem_of(message: pb.RaftMessage, term: int) -> str:
    """Return which number of a message to a replica in ``term`` is out of bounds, with the value and the bound. Empty:
    none."""
    if problem := _problem_of_term(message.term, term):
        return problem
    if not (math.isfinite(message.sent_ms) and math.isfinite(message.echo_ms)):
        return f"its times, {message.sent_ms} and {message.echo_ms}, are no finite numbers"
    if message.fresh_index > INDEX_MAX:
        return f"fresh_index {message.fresh_index} is above {INDEX_MAX}"
    kind = message.WhichOneof("kind")
    if kind == "heartbeat":
        index = message.heartbeat.commit_index
        return f"commit_index {index} is above {INDEX_MAX}" if index > INDEX_MAX else ""
    if kind == "append":
        return _problem_of_append(message.append, message.term)
    if kind == "snapshot":
        return _problem_of_snapshot(message.snapshot, message.term)
    if kind == "vote_request":
        return _problem_of_request(message.vote_request, message.term)
    return ""


def problem_of_position(position: tuple[int, int], term: int) -> str:
    """Return which number of another log's last ``position`` (term, index) is out of bounds for a replica in
    ``term``."""
    if position[1] > INDEX_MAX:
        return f"index {position[1]} is above {INDEX_MAX}"
    return _problem_of_term(position[0], term)


def _problem_of_term(term: int, ours: int) -> str:
    if term > TERM_MAX:
        return f"term {term} is above {TERM_MAX}"
    if ours and term > ours + TERM_AHEAD_MAX:
        return f"term {term} is more than {TERM_AHEAD_MAX} ahead of ours, {ours}"
    return ""


def _problem_of_append(append: pb.AppendEntries, term: int) -> str:
    if append.prev_index > INDEX_MAX:
        return f"prev_index {append.prev_index} is above {INDEX_MAX}"
    if append.prev_term > term:
        return f"prev_term {append.prev_term} is above its own term, {term}"
    return ""


def _problem_of_snapshot(notice: pb.SnapshotNotice, term: int) -> str:
    if not 1 <= notice.index <= INDEX_MAX:
        return f"a snapshot of index {notice.index} is not between 1 and {INDEX_MAX}"
    if notice.term > term:
        return f"a snapshot of term {notice.term} is above its own term, {term}"
    if len(notice.snapshot_id) > SNAPSHOT_ID_LENGTH_MAX:
        return f"a snapshot_id of {len(notice.snapshot_id)} characters, at most {SNAPSHOT_ID_LENGTH_MAX} are allowed"
    if notice.size_bytes > SNAPSHOT_BYTES_MAX:
        return f"a snapshot of {notice.size_bytes} bytes, at most {SNAPSHOT_BYTES_MAX} are allowed"
    return ""


def _problem_of_request(request: pb.VoteRequest, term: int) -> str:
    asked = term + 1 if request.is_pre_vote else term
    if request.term != asked:
        return f"it asks for a vote in term {request.term}, but with its own term, {term}, it would ask in {asked}"
    if request.last_index > INDEX_MAX:
        return f"last_index {request.last_index} is above {INDEX_MAX}"
    if request.last_term > term:
        return f"last_term {request.last_term} is above its own term, {term}"
    return ""
