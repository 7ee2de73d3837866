"""The growth of a local cluster: as an operator would make it, one node after the other.

::

    n1 begins a cluster of one
    n2 is announced (member add) ─► starts with --join ─► catches up ─► gets its vote (member promote)
    n3 likewise

Each step first reads the cluster's own state, so a growth that was cut off anywhere goes on from there. That state
also shows removed nodes; they are started no more.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from cortado.errors import CortadoError, InvalidArgument, OutcomeUnknown, TryAgain
from cortado.store.client import Client, Members
from cortado.store.local_cluster.files import NodePlan, Plan

_POLL_S: Final = 0.1
_CALL_TIMEOUT_S: Final = 5.0
_PATIENCE_S: Final = 10.0
_REMOVALS_S: Final = 1.0


class Site(Protocol):
    """The parts of the supervisor that growing uses."""

    @property
    def plan(self) -> Plan: ...

    def change(self, node: NodePlan) -> None:
        """Write the plan with this node as it is now; an announced one is started, a removed one stopped."""

    def say(self, text: str) -> None: ...

    def rest(self, seconds: float) -> None:
        """Wait. Raises Stopped if the supervisor is to stop."""


class Stopped(Exception):
    """The supervisor was told to stop."""


def grow(site: Site, connect: Callable[[], Client]) -> None:
    """Make every member of the plan a voter, and return when one of them leads. Raises Stopped, CortadoError."""
    with connect() as opened:
        client = opened.with_timeout(_CALL_TIMEOUT_S)
        _wait(site, lambda: bool(client.admin.members.list().leader), "no node leads yet")
        first = site.plan.nodes[0]
        if not first.is_voter:
            site.change(dataclasses.replace(first, is_announced=True, is_voter=True))
            site.say(f"{first.node_id} leads a new cluster at {first.address}")
        _wait(site, lambda: _left_removed(site, client), "the members are not known yet")
        for node in site.plan.nodes[1:]:
            if not node.is_voter and not node.is_removed:
                _admit(site, client, node)
        _wait(site, lambda: bool(client.admin.members.list().leader), "no node leads yet")


def watch_removals(site: Site, connect: Callable[[], Client]) -> None:
    """Leave the nodes that are removed from the cluster while it runs. Ends by raising Stopped."""
    with connect() as opened:
        client = opened.with_timeout(_CALL_TIMEOUT_S)
        while True:
            site.rest(_REMOVALS_S)
            with suppress(CortadoError):
                leave_removed(site, client)


def leave_removed(site: Site, client: Client) -> None:
    """Mark the nodes that were members and are no longer. Only the leader is believed: others may not know yet."""
    found = client.admin.members.list(at_leader=True)
    for node in site.plan.members:
        if node.is_voter and found.member(node.node_id) is None:
            site.change(dataclasses.replace(node, is_removed=True))
            site.say(f"{node.node_id} was removed from the cluster; its data is left in its directory")


def _left_removed(site: Site, client: Client) -> bool:
    leave_removed(site, client)
    return True


def _admit(site: Site, client: Client, node: NodePlan) -> None:
    found = _members(site, client)
    known = found.member(node.node_id)
    if known is None:
        site.say(f"{node.node_id} is announced at {node.peer_address}")
        _wait(site, lambda: _is_added(client, node), f"{node.node_id} cannot be announced yet")
    node = dataclasses.replace(node, is_announced=True)
    site.change(node)
    _wait(site, lambda: _is_joined(client, node.node_id), f"{node.node_id} has not joined yet")
    site.say(f"{node.node_id} has joined, and catches up")
    _wait(site, lambda: _is_promoted(client, node.node_id), f"{node.node_id} has no vote yet")
    site.change(dataclasses.replace(node, is_voter=True))
    site.say(f"{node.node_id} is a voter")


def _members(site: Site, client: Client) -> Members:
    found: list[Members] = []

    def ask() -> bool:
        found.append(client.admin.members.list())
        return True

    _wait(site, ask, "no node answers yet")
    return found[-1]


def _is_added(client: Client, node: NodePlan) -> bool:
    if client.admin.members.list().member(node.node_id) is None:
        client.admin.members.add(node.node_id, node.peer_address)
    return True


def _is_joined(client: Client, node_id: str) -> bool:
    member = client.admin.members.list().member(node_id)
    return member is not None and member.joined


def _is_promoted(client: Client, node_id: str) -> bool:
    member = client.admin.members.list().member(node_id)
    if member is None:
        raise InvalidArgument("NODE", "was removed while it was to become a voter", node_id)
    if not member.voter:
        client.admin.members.promote(node_id)
    return True


def _wait(site: Site, is_done: Callable[[], bool], not_yet: str) -> None:
    """Wait until it is done. A failure that can pass is retried, and reported if it takes long; others are raised."""
    began_s = said_s = time.monotonic()
    while True:
        try:
            if is_done():
                return
            problem = ""
        except (TryAgain, OutcomeUnknown) as error:
            problem = f": {error.message()}"
        except CortadoError as error:
            raise InvalidArgument("cluster", f"{not_yet}: {error.message()}") from error
        now_s = time.monotonic()
        if now_s - said_s >= _PATIENCE_S:
            said_s = now_s
            site.say(f"after {now_s - began_s:.0f} s {not_yet}{problem}")
        site.rest(_POLL_S)
