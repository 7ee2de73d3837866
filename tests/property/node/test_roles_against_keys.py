"""The roles in memory against a twin that reads the keys each time, on three nodes with all kinds of events in the log:
entries in flight, committed and not applied, taken back, given up by a leader that lost; crashes, cuts, full disks.

The twin is asked when each write is evaluated, by the very reader that the write is given; and for every node after
every step, by a reader of the committed state there.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from cortado.errors import ResourceExhausted
from cortado.store.auth import changes
from cortado.store.auth.current import Credential, Roles
from cortado.store.auth.state import AuthState
from cortado.store.auth.stored import Kind
from cortado.store.auth.tokens import make_token
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from support.examples import examples
from support.node_world import World
from support.nodes import increment, key

NODES = ("n1", "n2", "n3")
NAMES = ("app", "root")
TOKENS = [make_token(lambda count, number=number: bytes([number]) * count) for number in range(6)]
CREDENTIALS = [*(Credential(each.text) for each in TOKENS), Credential(certificate="cert")]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enable"), st.sampled_from(TOKENS)),
        st.tuples(st.just("disable"), st.none()),
        st.tuples(st.just("create"), st.tuples(st.sampled_from(NAMES), st.sampled_from(TOKENS))),
        st.tuples(st.just("certificate"), st.none()),
        st.tuples(st.just("rotate"), st.tuples(st.sampled_from(NAMES), st.sampled_from(TOKENS))),
        st.tuples(st.just("revoke"), st.sampled_from((*NAMES, "cert"))),
        st.tuples(st.just("grant"), st.sampled_from((*NAMES, "cert"))),
        st.tuples(st.just("ungrant"), st.sampled_from((*NAMES, "cert"))),
        st.tuples(st.just("write"), st.integers(1, 100)),
        st.tuples(st.just("hold log"), st.sampled_from(NODES)),
        st.tuples(st.just("hold data"), st.sampled_from(NODES)),
        st.tuples(st.just("release"), st.none()),
        st.tuples(st.just("cut"), st.sampled_from(NODES)),
        st.tuples(st.just("heal"), st.none()),
        st.tuples(st.just("no room"), st.sampled_from(NODES)),
        st.tuples(st.just("restart"), st.sampled_from(NODES)),
        st.tuples(st.just("sleep"), st.sampled_from((1, 3, 30, 1_500))),
    ),
    max_size=60,
)


def by_keys(reader: Reader) -> tuple[bool, list[tuple[str, int] | None]]:
    """Return whether roles are on, and each credential's principal with its rights: searched for among all."""
    state = AuthState(reader)
    found: list[tuple[str, int] | None] = [None] * len(CREDENTIALS)
    for principal in state.principals():
        of = principal.name, len(principal.grants)
        digests = [each.digest for each in principal.tokens]
        for place, token in enumerate(TOKENS):
            if token.digest in digests:
                found[place] = of
        if principal.kind is Kind.CERTIFICATE:
            found[-1] = of
    return state.switch().enabled, found


def in_memory(roles: Roles) -> tuple[bool, list[tuple[str, int] | None]]:
    known = [roles.known(each, lambda: 0) for each in CREDENTIALS]
    found = [None if each is None else (each.principal.name, len(each.principal.grants)) for each in known]
    return roles.is_enabled, found


def change_of(kind: str, about: Any) -> Evaluate | None:
    new = changes.NewToken
    match kind:
        case "enable":
            return changes.enable("root", Kind.TOKEN, new(about.token_id, about.digest))
        case "disable":
            return changes.disable()
        case "create":
            name, token = about
            return changes.create(name, Kind.TOKEN, new(token.token_id, token.digest))
        case "certificate":
            return changes.create("cert", Kind.CERTIFICATE, None)
        case "rotate":
            name, token = about
            return changes.rotate(name, new(token.token_id, token.digest), 60_000)
        case "revoke":
            return changes.revoke(about)
        case "grant":
            return changes.grant(about, "admin", "cluster")
        case "ungrant":
            return changes.ungrant(about, "admin", "cluster")
        case "write":
            return many(about)
    return None


def many(count: int) -> Evaluate:
    def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        for number in range(count):
            mutations.put(key(f"k{number}"), b"v")
        return Evaluation(mutations, None)

    return evaluate


class Scene:
    """Three nodes, and their requests."""

    def __init__(self) -> None:
        self.world = World(limits=NodeLimits(batch_commands_max=3))
        self.writes: list[asyncio.Future[Any]] = []
        self.compared: list[tuple[object, object]] = []

    def ask(self, node: Host, evaluate: Evaluate) -> None:
        """Write, and compare the roles at the point of evaluation."""

        def compared(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            # A node turns any error raised here into an answer.
            self.compared.append((in_memory(node.meta.roles.appended), by_keys(reader)))
            return evaluate(reader, commit_ts)

        self.writes.append(asyncio.ensure_future(node.meta.write(compared)))

    def look(self) -> None:
        for found, expected in self.compared:
            assert found == expected, "where a write is evaluated"
        for place in self.world.places.values():
            replica = place.node.meta
            if place.is_running:
                committed = by_keys(replica.reader(replica.read_ts()))
                assert in_memory(replica.roles.committed) == committed, f"where {place.node_id} serves a call"
                if replica.driver.pipeline.newest_in_flight is None:
                    assert in_memory(replica.roles.appended) == committed, f"nothing is in flight at {place.node_id}"

    async def step(self, kind: str, about: Any) -> None:
        world = self.world
        evaluate = change_of(kind, about)
        if evaluate is not None:
            for node in world.leaders():
                self.ask(node, evaluate)
            return
        place = None if about not in NODES else world.places[about]
        match kind:
            case "hold log" if place is not None:
                place.disk.hold()
            case "hold data" if place is not None:
                place.data.hold()
            case "cut" if place is not None:
                world.heal()
                world.cut_off(place.node_id)
            case "heal":
                world.heal()
            case "no room" if place is not None:
                place.data.failures.append(ResourceExhausted("no room", 1, "map"))
            case "release":
                self.release()
            case "restart" if place is not None:
                place.crash()
                await place.start()
            case "sleep":
                await world.sleep(about)

    def release(self) -> None:
        for each in self.world.places.values():
            each.disk.release()
            each.data.release()

    async def play(self, steps: list[tuple[str, Any]]) -> None:
        world = self.world
        await world.grow(*NODES)
        for kind, about in steps:
            await self.step(kind, about)
            self.look()
            await asyncio.sleep(0)
            self.look()
        self.release()
        world.heal()
        await world.sleep(3_000)
        leader = await world.led()
        self.ask(leader, increment("end"))
        await self.writes[-1]
        await world.settled()
        self.look()
        for each in self.writes:
            # Answers of writes that a crash has left never come.
            each.cancel()
        await asyncio.gather(*self.writes, return_exceptions=True)


APART = [("enable", TOKENS[0]), ("sleep", 30), ("cut", "n1"), ("create", ("app", TOKENS[1])), *[("sleep", 1_500)] * 3]
"""A leader that is cut off appends entries that never happen."""
BEHIND = [("enable", TOKENS[0]), ("hold data", "n1"), ("sleep", 30), ("rotate", ("root", TOKENS[1])), ("sleep", 30)]
"""Committed entries are not applied for a while."""
AGAIN = [("enable", TOKENS[0]), ("sleep", 30), ("restart", "n2"), ("sleep", 1), ("restart", "n1"), ("sleep", 1_500)]


@settings(max_examples=examples(40), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(STEPS)
@example(APART)
@example(BEHIND)
@example(AGAIN)
def test_the_roles_in_memory_are_what_a_reader_of_the_keys_finds(steps: list[tuple[str, Any]]) -> None:
    scene = Scene()
    scene.world.run(lambda: scene.play(steps))
    assert scene.compared
