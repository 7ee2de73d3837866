"""Principals, tokens and grants as they change, over a keyspace in a dictionary."""

from __future__ import annotations

from typing import Any

import pytest

from cortado.errors import (
    AlreadyExists,
    DataLoss,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    TooLarge,
    Unauthenticated,
)
from cortado.store.auth import changes
from cortado.store.auth.caller import Caller, checked, denial
from cortado.store.auth.changes import GRANTS_MAX, PRINCIPALS_MAX, NewToken
from cortado.store.auth.current import AppliedRoles, Credential, Roles, applied_roles, stored_roles
from cortado.store.auth.roles import CLUSTER, Demand, Permission, Resource, check_grant, check_resource
from cortado.store.auth.state import AuthState
from cortado.store.auth.stored import AUTH_KEY, Kind, Switch
from cortado.store.auth.tokens import Token, check_token, make_token
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, logical_of
from cortado.store.mvcc.versions import Item, encode_versions
from support.dict_reader import DictStore

_NAMESPACE = Resource("namespace:carts")


def _token(number: int) -> Token:
    return make_token(lambda count: number.to_bytes(count, "big"))


def _new(token: Token, lifetime_ms: int = 0) -> NewToken:
    return NewToken(token.token_id, token.digest, lifetime_ms)


def _items(ts: Timestamp, evaluation: Evaluation) -> list[Item]:
    return sorted(encode_versions(evaluation.mutations.keys, evaluation.mutations.payloads, ts))


def _no_reader() -> Reader:
    raise AssertionError("no demand stands in what is stored")


class World:
    """``write`` plays the node; ``may`` asks as a caller would."""

    def __init__(self) -> None:
        self.store = DictStore()
        self.applied = AppliedRoles(False)
        self.root = _token(1)
        self.app = _token(2)

    def write(self, evaluate: Any) -> Any:
        ts, evaluation = self.store.write(evaluate)
        self.applied = applied_roles(_items(ts, evaluation)) or self.applied
        return evaluation.reply

    def switch(self) -> Switch:
        return AuthState(self.store.snapshot(self.store.now)).switch()

    def roles(self) -> Roles:
        return Roles(self.applied, self.store.snapshot(self.store.now).get)

    def refusal(self, token: str, demand: Demand, *, after_ms: int = 0) -> Exception | None:
        caller = Caller(Credential(token), (demand,))
        return denial(self.roles(), caller, lambda: self.store.now.wall_ms + after_ms, _no_reader)

    def may(self, token: str, permission: Permission = Permission.READ, *, after_ms: int = 0) -> bool:
        return self.refusal(token, Demand(permission, _NAMESPACE), after_ms=after_ms) is None


@pytest.fixture
def world() -> World:
    made = World()
    made.write(changes.enable("root", Kind.TOKEN, _new(made.root)))
    made.write(changes.create("app", Kind.TOKEN, _new(made.app)))
    return made


def test_everybody_may_everything_while_roles_are_off() -> None:
    world = World()
    assert world.may("", Permission.ADMINISTER)
    world.write(changes.create("app", Kind.TOKEN, _new(world.app)))
    assert world.may("", Permission.ADMINISTER)


def test_the_entry_that_switches_roles_on_makes_an_admin(world: World) -> None:
    assert world.may(world.root.text, Permission.ADMINISTER)
    assert isinstance(world.refusal("", Demand(Permission.KNOWN)), Unauthenticated)
    assert world.switch().admins == 1
    with pytest.raises(InvalidArgument, match="is enabled already"):
        world.write(changes.enable("other", Kind.TOKEN, _new(_token(3))))


def test_a_principal_may_nothing_before_it_is_granted(world: World) -> None:
    refusal = world.refusal(world.app.text, Demand(Permission.READ, _NAMESPACE))
    assert isinstance(refusal, PermissionDenied)
    assert refusal.fields() == {"principal": "app", "needed": "reader", "resource": "namespace:carts"}
    world.write(changes.grant("app", "writer", "namespace:carts"))
    assert world.may(world.app.text, Permission.WRITE)
    assert not world.may(world.app.text, Permission.DEFINE)
    world.write(changes.ungrant("app", "writer", "namespace:carts"))
    assert not world.may(world.app.text)
    with pytest.raises(NotFound):
        world.write(changes.ungrant("app", "writer", "namespace:carts"))


def test_a_token_of_another_secret_is_nobodys(world: World) -> None:
    forged = world.app.text[:-2] + ("AA" if not world.app.text.endswith("AA") else "BB")
    assert check_token(forged)
    for text in (forged, "", "?", "ctd_", world.app.text + " ", world.app.text.upper()):
        assert isinstance(world.refusal(text, Demand(Permission.KNOWN)), Unauthenticated), text


def test_rotation_leaves_the_token_before_it_a_while(world: World) -> None:
    world.write(changes.grant("app", "reader", "namespace:carts"))
    second, third = _token(3), _token(4)
    world.write(changes.rotate("app", _new(second), overlap_ms=1_000))
    assert world.may(world.app.text)
    assert world.may(second.text)
    assert not world.may(world.app.text, after_ms=1_001)
    assert world.may(second.text, after_ms=1_001)
    world.write(changes.rotate("app", _new(third), overlap_ms=1_000))
    assert not world.may(world.app.text)
    assert world.may(second.text)
    assert world.may(third.text)
    world.write(changes.rotate("app", _new(_token(5)), overlap_ms=0))
    assert not world.may(third.text)


def test_a_token_ends_with_its_lifetime(world: World) -> None:
    short = _token(3)
    world.write(changes.create("short", Kind.TOKEN, _new(short, lifetime_ms=500)))
    world.write(changes.grant("short", "reader", "cluster"))
    assert world.may(short.text)
    assert not world.may(short.text, after_ms=501)


def test_who_is_revoked_is_nobody_and_one_of_its_name_begins_anew(world: World) -> None:
    world.write(changes.grant("app", "reader", "cluster"))
    world.write(changes.revoke("app"))
    assert not world.may(world.app.text)
    again = _token(3)
    world.write(changes.create("app", Kind.TOKEN, _new(again)))
    assert not world.may(again.text)


def test_one_token_can_be_revoked_alone(world: World) -> None:
    world.write(changes.grant("app", "reader", "cluster"))
    second = _token(3)
    world.write(changes.rotate("app", _new(second), overlap_ms=10_000))
    world.write(changes.revoke("app", world.app.token_id))
    assert not world.may(world.app.text)
    assert world.may(second.text)
    with pytest.raises(NotFound):
        world.write(changes.revoke("app", world.app.token_id))


def test_the_last_admin_stays(world: World) -> None:
    for evaluate in (
        changes.revoke("root"),
        changes.ungrant("root", "admin", "cluster"),
        changes.revoke("root", world.root.token_id),
    ):
        with pytest.raises(InvalidArgument, match="last admin"):
            world.write(evaluate)
    world.write(changes.grant("app", "admin", "cluster"))
    world.write(changes.revoke("root"))
    assert world.may(world.app.text, Permission.ADMINISTER)
    world.write(changes.disable())
    world.write(changes.revoke("app"))


def test_a_certificate_is_no_token_and_a_token_no_certificate(world: World) -> None:
    world.write(changes.create("spark", Kind.CERTIFICATE, None))
    world.write(changes.grant("spark", "reader", "cluster"))
    demand = (Demand(Permission.READ, _NAMESPACE),)

    def refusal(name: str) -> Exception | None:
        return denial(world.roles(), Caller(Credential(certificate=name), demand), lambda: 0, _no_reader)

    assert refusal("spark") is None
    for name in ("Spark", "spark ", "app", "root", "spark\u0000", "\uff53park", ""):
        assert isinstance(refusal(name), Unauthenticated), name
    with pytest.raises(InvalidArgument, match="certificate"):
        world.write(changes.rotate("spark", _new(_token(3)), overlap_ms=0))


@pytest.mark.parametrize("name", ["", "App", "app ", " app", "\uff41pp", "a\u0301pp", "app\n", "-app", "x" * 65, "a/b"])
def test_names_that_could_look_like_others_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        changes.create(name, Kind.TOKEN, _new(_token(1)))
    assert refused.value.field == "principal"


@pytest.mark.parametrize(
    "resource", ["", "clusters", "cluster:", "table:orders", "table:a.b.c", "database:", "namespace:-a", "index:a"]
)
def test_resources_of_another_form_are_refused(resource: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^resource: "):
        check_resource(resource)


def test_roles_of_the_cluster_are_granted_on_nothing_else() -> None:
    assert check_grant("operator", "cluster").resource == CLUSTER
    with pytest.raises(InvalidArgument, match="must be cluster"):
        check_grant("admin", "database:shop")
    with pytest.raises(InvalidArgument, match="must be one of reader"):
        check_grant("root", "cluster")


def test_a_token_id_is_never_taken_twice(world: World) -> None:
    with pytest.raises(AlreadyExists):
        world.write(changes.create("other", Kind.TOKEN, _new(world.app)))


def test_there_are_bounds(world: World) -> None:
    for number in range(GRANTS_MAX):
        world.write(changes.grant("app", "reader", f"namespace:n{number}"))
    with pytest.raises(TooLarge):
        world.write(changes.grant("app", "reader", "namespace:more"))
    for number in range(PRINCIPALS_MAX - 2):
        world.write(changes.create(f"p{number}", Kind.CERTIFICATE, None))
    with pytest.raises(TooLarge):
        world.write(changes.create("more", Kind.CERTIFICATE, None))


def test_a_write_is_decided_by_the_state_that_it_is_evaluated_on(world: World) -> None:
    world.write(changes.grant("app", "writer", "namespace:carts"))
    caller = Caller(Credential(world.app.text), (Demand(Permission.WRITE, _NAMESPACE),))
    write = checked(lambda _reader, _ts: Evaluation(Mutations(), "written"), caller, world.roles)
    assert world.write(write) == "written"
    world.write(changes.ungrant("app", "writer", "namespace:carts"))
    with pytest.raises(PermissionDenied):
        world.write(write)


class Damaged:
    """A reader with keys out of their order, so that no search can say which keys are missing."""

    def get(self, key: Any) -> Any:
        raise DataLoss("the first item and the items behind it", "keys are out of their order")


class Lost:
    """A reader after the damaged keys were given up."""

    def get(self, key: Any) -> Any:
        return None


@pytest.mark.parametrize("reader", [Damaged(), Lost()])
def test_roles_that_damage_hides_stop_everybody_where_they_are_on_and_nobody_where_they_are_off(
    world: World, reader: Any
) -> None:
    caller = Caller(Credential(world.root.text), (Demand(Permission.KNOWN),))

    def refusal(applied: AppliedRoles) -> Exception | None:
        return denial(Roles(applied, reader.get), caller, lambda: 0, _no_reader)

    assert refusal(stored_roles(reader, is_enabled=False)) is None
    hidden = stored_roles(reader, is_enabled=True)
    assert isinstance(refusal(hidden), DataLoss)
    # The way out needs to read nothing.
    ts, evaluation = world.store.write(changes.switched_off())
    assert denial(Roles(hidden, reader.get, [evaluation.mutations]), caller, lambda: 0, _no_reader) is None
    applied = applied_roles(_items(ts, evaluation))
    assert applied is not None
    assert refusal(applied) is None


def test_who_there_is_is_counted_where_roles_are_switched_on(world: World) -> None:
    world.write(changes.switched_off())
    assert world.switch() == Switch()
    world.write(changes.revoke("app"))
    world.write(changes.create("other", Kind.CERTIFICATE, None))
    world.write(changes.enable("next", Kind.CERTIFICATE, None))
    assert world.switch() == Switch(True, principals=3, admins=2)


def test_whether_roles_are_on_is_known_from_what_is_applied(world: World) -> None:
    granted = _items(*world.store.write(changes.grant("app", "reader", "namespace:carts")))
    found = applied_roles(granted)
    assert found is not None
    assert found.is_enabled
    off = applied_roles(_items(*world.store.write(changes.disable())))
    assert off is not None
    assert not off.is_enabled
    others = [item for item in granted if logical_of(item[0]) != AUTH_KEY]
    assert others
    assert applied_roles(others) is applied_roles([]) is None
