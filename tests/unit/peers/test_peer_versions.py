"""Nodes of two builds speak to each other if each reads the other's formats, and else say why they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cortado.errors import PeerRefused
from cortado.proto.internal.peers_pb2 import Hello, JoinRequest
from cortado.store.peers.versions import OURS, Versions, check_versions, versions_of

# Three builds in a row: the second reads a format that only the third writes.
FIRST = Versions(oldest_protocol=1, newest_protocol=1, entries_written=2, oldest_entries=2, newest_entries=2)
SECOND = Versions(oldest_protocol=1, newest_protocol=2, entries_written=2, oldest_entries=2, newest_entries=3)
THIRD = Versions(oldest_protocol=2, newest_protocol=3, entries_written=3, oldest_entries=2, newest_entries=3)


def refusals(theirs: Versions, ours: Versions) -> list[str]:
    """Return both sides' refusals, each of the other."""
    said = []
    for sides in ((theirs, "n2", "n1", ours), (ours, "n1", "n2", theirs)):
        with pytest.raises(PeerRefused) as refused:
            check_versions(*sides)
        said.append(refused.value.problem)
    return said


@pytest.mark.parametrize("builds", [(FIRST, FIRST), (FIRST, SECOND), (SECOND, THIRD)])
def test_builds_in_a_row_understand_each_other_both_ways(builds: tuple[Versions, Versions]) -> None:
    one, other = builds
    check_versions(one, "n2", "n1", other)
    check_versions(other, "n1", "n2", one)


def test_builds_without_a_common_protocol_say_what_each_speaks() -> None:
    assert refusals(THIRD, FIRST) == [
        "node n2 speaks versions 2 to 3 of the peers' protocol, node n1 version 1",
        "node n1 speaks version 1 of the peers' protocol, node n2 versions 2 to 3",
    ]


def test_a_build_that_reads_nothing_of_what_another_writes_is_kept_apart() -> None:
    newest = replace(THIRD, oldest_protocol=1)
    both = "node n2 writes version 3 of log entries, node n1 reads version 2: upgrade through the versions in between"
    assert refusals(newest, FIRST) == [both, both]
    forgetful = replace(newest, oldest_entries=3)
    assert refusals(forgetful, SECOND)[1] == (
        "node n1 writes version 2 of log entries, node n2 reads version 3: upgrade through the versions in between"
    )


@pytest.mark.parametrize("kind", [Hello, JoinRequest])
def test_what_a_node_tells_of_itself_is_what_it_knows(kind: type[Hello] | type[JoinRequest]) -> None:
    message = kind()
    SECOND.tell(message)
    assert versions_of(kind.FromString(message.SerializeToString())) == SECOND


def test_a_build_that_tells_nothing_of_its_entries_is_refused() -> None:
    with pytest.raises(PeerRefused, match="writes version 0 of log entries"):
        check_versions(versions_of(Hello(protocol=OURS.newest_protocol)), "n2", "n1")


def test_this_build_reads_what_it_writes() -> None:
    assert OURS.oldest_entries <= OURS.entries_written <= OURS.newest_entries
    assert OURS.oldest_protocol <= OURS.newest_protocol
