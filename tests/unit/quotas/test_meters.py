"""A node's counts against quotas, on virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from cortado.errors import InvalidArgument, NotFound, QuotaExceeded, TooLarge
from cortado.store.auth.roles import CLUSTER, Demand, Permission, Resource
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.quotas import changes
from cortado.store.quotas.meters import Meter, Meters
from cortado.store.quotas.quota import BYTES_PER_SECOND_MAX, CALLS_PER_SECOND_MAX, STORED_BYTES_MAX, Quota, Target
from cortado.store.quotas.stored import QUOTAS_KEY, encode_quotas, quotas_of
from support.dict_reader import DictStore

READ, WRITE, DEFINE = Permission.READ, Permission.WRITE, Permission.DEFINE


@dataclass
class World:
    now_ms: float = 100_000.0

    def __post_init__(self) -> None:
        self.meters = Meters(lambda: self.now_ms)

    def use(self, *quotas: Quota) -> None:
        self.meters.use({each.target: each for each in quotas})

    def call(self, *demands: Demand, principal: str = "", size_bytes: int = 0) -> Sequence[Meter]:
        counted = self.meters.of(principal, demands)
        self.meters.begin(counted, lambda: size_bytes)
        return counted


def _demand(resource: str, permission: Permission = READ) -> Demand:
    return Demand(permission, Resource(resource))


def _quota(target: str, **limits: int) -> Quota:
    return Quota(Target(target), **limits)


def test_a_second_worth_at_once_then_as_many_as_come() -> None:
    world = World()
    world.use(_quota("namespace:carts", calls_per_second=3))
    for _ in range(3):
        world.call(_demand("namespace:carts"))
    with pytest.raises(QuotaExceeded) as refused:
        world.call(_demand("namespace:carts"))
    told = refused.value
    assert (told.quota, told.resource, told.limit) == ("namespace:carts", "calls_per_second", 3)
    assert told.retry_delay_ms == 334
    assert told.message() == "the quota of namespace:carts is used up: calls_per_second is 3"
    world.now_ms += told.retry_delay_ms
    world.call(_demand("namespace:carts"))
    with pytest.raises(QuotaExceeded):
        world.call(_demand("namespace:carts"))
    world.call(_demand("namespace:others"))
    assert world.meters.refusals == {("namespace", "calls_per_second"): 2}


def test_bytes_are_owed_and_the_next_call_waits_for_them() -> None:
    world = World()
    world.use(_quota("database:shop", bytes_per_second=1_000))
    counted = world.call(_demand("table:shop.orders", WRITE), size_bytes=500)
    world.meters.take_bytes(counted, 10_500)
    assert world.meters.owed_ms(counted) == pytest.approx(10_001)
    with pytest.raises(QuotaExceeded) as refused:
        world.call(_demand("table:shop.customers"))
    assert (refused.value.resource, refused.value.retry_delay_ms) == ("bytes_per_second", 10_001)
    world.now_ms += 10_001
    assert world.meters.owed_ms(counted) == 0
    world.call(_demand("database:shop"))


def test_a_call_counts_once_for_each_quota_that_it_touches_and_for_none_where_one_refuses_it() -> None:
    world = World()
    world.use(
        _quota("database:a", calls_per_second=1),
        _quota("database:b", calls_per_second=2),
        _quota("principal:app", calls_per_second=2),
    )
    both = (_demand("table:a.x", WRITE), _demand("table:a.y"), _demand("table:b.z", WRITE))
    assert [each.quota.target for each in world.call(*both, principal="app")] == [
        "database:a",
        "database:b",
        "principal:app",
    ]
    for _ in range(3):
        with pytest.raises(QuotaExceeded) as refused:
            world.call(*both, principal="app")
        assert refused.value.quota == "database:a"
    # Neither of the others was charged for those.
    world.call(_demand("table:b.z"), principal="app")


@pytest.mark.parametrize("permission", [each for each in Permission if each not in (READ, WRITE)])
def test_what_neither_reads_nor_writes_data_counts_for_nobody(permission: Permission) -> None:
    world = World()
    world.use(_quota("database:a", calls_per_second=1), _quota("principal:root", calls_per_second=1))
    for resource in ("database:a", "table:a.x", CLUSTER):
        assert world.call(_demand(resource, permission), principal="root") == ()


def test_a_caller_that_nobody_knows_counts_for_what_it_reads_alone() -> None:
    world = World()
    world.use(_quota("principal:app", calls_per_second=1), _quota("namespace:n", calls_per_second=5))
    assert [each.quota.target for each in world.call(_demand("namespace:n"))] == ["namespace:n"]


def test_what_stays_keeps_its_count_and_what_is_changed_begins_anew() -> None:
    world = World()
    stays = _quota("namespace:a", calls_per_second=1)
    changed = _quota("namespace:b", calls_per_second=1, stored_bytes=9)
    world.use(stays, changed)
    world.meters.measured(world.meters.by_target[Target("namespace:b")], 9)
    for each in ("namespace:a", "namespace:b"):
        world.call(_demand(each))
    world.use(stays, _quota("namespace:b", calls_per_second=2, stored_bytes=9), _quota("namespace:c", stored_bytes=1))
    with pytest.raises(QuotaExceeded):
        world.call(_demand("namespace:a"))
    world.call(_demand("namespace:b"))
    assert world.meters.any_full
    assert world.meters.fullest() == 1
    world.use()
    assert not world.meters.any_full
    assert world.meters.fullest() is None
    world.call(_demand("namespace:a"))


def test_nothing_is_added_where_it_is_full_until_it_is_not() -> None:
    world = World()
    world.use(_quota("database:shop", stored_bytes=1_000))
    meter = world.meters.by_target[Target("database:shop")]
    orders = _demand("table:shop.orders", WRITE)
    world.meters.check_room([orders])
    world.meters.measured(meter, 1_000)
    with pytest.raises(QuotaExceeded) as refused:
        world.meters.check_room([_demand("namespace:shop", WRITE), orders])
    assert (refused.value.resource, refused.value.limit) == ("stored_bytes", 1_000)
    assert "1000 bytes are stored" in refused.value.message()
    world.meters.measured(meter, 999)
    world.meters.check_room([orders])
    assert not world.meters.any_full


def test_names_that_callers_make_up_fill_no_memory() -> None:
    world = World()
    world.use(_quota("namespace:a", calls_per_second=1))
    for number in range(20_000):
        world.call(_demand(f"namespace:{number}"), principal=f"p{number}")
    assert len(world.meters._by_resource) <= 4_096
    assert len(world.meters.by_target) == 1


def _evaluated(quotas: dict[Target, Quota], evaluate: Evaluate) -> dict[Target, Quota]:
    store = DictStore()
    before = Mutations()
    before.put(QUOTAS_KEY, encode_quotas(quotas.values()))
    store.write(lambda _reader, _ts: Evaluation(before, None))
    store.write(evaluate)
    return dict(quotas_of(store.snapshot()))


def test_a_quota_takes_the_place_of_the_one_before_and_there_are_so_many() -> None:
    found = _evaluated({}, changes.set_quota(_quota("database:a", calls_per_second=1, bytes_per_second=2)))
    found = _evaluated(found, changes.set_quota(_quota("database:a", stored_bytes=3)))
    assert found == {Target("database:a"): _quota("database:a", stored_bytes=3)}
    assert _evaluated(found, changes.remove_quota("database:a")) == {}
    with pytest.raises(NotFound):
        _evaluated({}, changes.remove_quota("database:a"))
    full = {Target(f"database:d{number}"): _quota(f"database:d{number}", calls_per_second=1) for number in range(1_000)}
    _evaluated(full, changes.set_quota(_quota("database:d0", calls_per_second=2)))
    with pytest.raises(TooLarge):
        _evaluated(full, changes.set_quota(_quota("database:one-more", calls_per_second=1)))


@pytest.mark.parametrize(
    ("quota", "field"),
    [
        (_quota("database:a"), "quota"),
        (_quota("database:a", calls_per_second=0), "calls_per_second"),
        (_quota("database:a", calls_per_second=-1), "calls_per_second"),
        (_quota("database:a", calls_per_second=CALLS_PER_SECOND_MAX + 1), "calls_per_second"),
        (_quota("database:a", bytes_per_second=BYTES_PER_SECOND_MAX + 1), "bytes_per_second"),
        (_quota("database:a", stored_bytes=STORED_BYTES_MAX + 1), "stored_bytes"),
        (_quota("principal:a", stored_bytes=1), "stored_bytes"),
        (_quota("principal:A", calls_per_second=1), "target"),
        (_quota("table:a.b", calls_per_second=1), "target"),
        (_quota("cluster", calls_per_second=1), "target"),
        (_quota("database:", calls_per_second=1), "target"),
        (_quota("database:a.b", calls_per_second=1), "target"),
        (_quota("", calls_per_second=1), "target"),
    ],
)
def test_what_is_no_quota_is_refused_by_its_field(quota: Quota, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        changes.set_quota(quota)
    assert refused.value.field == field
