"""A node that moved tells its cluster its address, and not for ever if another one tells otherwise."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.addresses import Addresses
from cortado.store.replica.replica import Replica, Role
from cortado.store.server import joining

OURS, THEIRS = Addresses("10.0.0.1:7621", "10.0.0.1:7622"), Addresses("10.0.0.2:7621", "10.0.0.2:7622")
ROUNDS = 12


@dataclass
class Leader:
    """A node that leads. If ``has_copy``, a copy of it changes its address back each time."""

    identity: Identity
    has_copy: bool
    addresses: Addresses = THEIRS
    role: Role = Role.LEADER
    told: list[Addresses] = field(default_factory=list)

    @property
    def roster(self) -> Roster:
        return Roster.of(
            (Member(self.identity.node_id, self.addresses.peers, self.identity.storage_id, self.addresses.clients),)
        )

    async def bind_member(self, member: Member) -> None:
        addresses = Addresses(member.address, member.peer_address)
        self.told.append(addresses)
        if not self.has_copy:
            self.addresses = addresses


def waits_of(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long it waited after each look, up to ROUNDS looks."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == ROUNDS:
            raise asyncio.CancelledError

    monkeypatch.setattr(joining, "asyncio", SimpleNamespace(sleep=sleep))
    with suppress(asyncio.CancelledError):
        asyncio.run(joining.tell_addresses(cast(Replica, leader), leader.identity, OURS, None, lambda _: None))
    return waits


def test_a_node_tells_its_addresses_once(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader(identity, has_copy=False)
    assert len(waits_of(leader, monkeypatch)) == 1
    assert leader.told == [OURS]


def test_two_copies_of_one_directory_do_not_tell_their_addresses_in_turn_for_ever(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits = waits_of(Leader(identity, has_copy=True), monkeypatch)
    assert waits[:5] == [1, 1, 2, 4, 8]
    assert waits[-1] == 60
    assert "a copy of this data directory" in caplog.text


@pytest.fixture
def identity() -> Identity:
    return Identity(cluster_id="c", node_id="n1", storage_id="s1")
