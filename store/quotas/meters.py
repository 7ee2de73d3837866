"""The use of each quota at one node, and the refusal of calls that exceed one.

::

    a call ──► meters of its principal, databases and namespaces ──► all of them have room? ──► it begins: a call and
               (none where there are no quotas)                      no: QuotaExceeded,          its request's bytes
                                                                     nothing is counted          are taken from each
                                                                                                   │
                                                                     replies are taken afterwards, and may be owed

Only quotas have meters, so callers cannot fill the memory. When quotas change, a quota that stays the same keeps its
meter; one that is set anew begins with full buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from cortado.errors import QuotaExceeded
from cortado.store.auth.roles import Demand, Permission
from cortado.store.quotas.bucket import Bucket
from cortado.store.quotas.quota import DATABASE, PRINCIPAL, Quota, Target, kind_of

CALLS: Final = "calls_per_second"
BYTES: Final = "bytes_per_second"
STORED: Final = "stored_bytes"
LIMITS: Final = (CALLS, BYTES, STORED)

STORED_DELAY_MS: Final = 5_000
"""Stored bytes are measured more often; but they become less only by collection."""
_RESOURCES_MAX: Final = 4_096
"""The resource names that are remembered; most have no quota."""
_TABLE: Final = "table:"
_READ, _WRITE = Permission.READ, Permission.WRITE


class Meter:
    """The use of one quota."""

    __slots__ = ("bytes", "calls", "quota", "refused", "used_bytes")

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.calls = None if quota.calls_per_second is None else Bucket(quota.calls_per_second)
        self.bytes = None if quota.bytes_per_second is None else Bucket(quota.bytes_per_second)
        self.used_bytes: int | None = None
        """Stored, as measured last."""
        self.refused = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing may be added."""
        limit = self.quota.stored_bytes
        return limit is not None and self.used_bytes is not None and self.used_bytes >= limit


class Meters:
    """The meters of one node; everything here runs on its loop."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self.by_target: dict[Target, Meter] = {}
        """Empty without quotas: a caller then need look no further."""
        self.generation = 0
        """The generation of the quotas."""
        self.any_full = False
        """Whether there is one that nothing may be added to."""
        self.refusals: dict[tuple[str, str], int] = {}
        """By kind of target and limit, since the start."""
        self._by_resource: dict[str, Meter | None] = {}

    def use(self, quotas: Mapping[Target, Quota]) -> None:
        """From now on these."""
        before = self.by_target
        self.by_target = {target: _meter(quota, before.get(target)) for target, quota in quotas.items()}
        self._by_resource = {}
        self.generation += 1
        self._look_for_full()

    def measured(self, meter: Meter, used_bytes: int) -> None:
        """Note the stored bytes of the target of ``meter``."""
        meter.used_bytes = used_bytes
        self._look_for_full()

    def _look_for_full(self) -> None:
        self.any_full = any(each.is_full for each in self.by_target.values())

    def of(self, principal: str, demands: Sequence[Demand]) -> Sequence[Meter]:
        """Return those that a call counts for: none of a call that neither reads nor writes data, each one once."""
        known = self._by_resource
        found: dict[Meter, None] = {}
        counts = False
        for permission, resource in demands:
            if permission is _READ or permission is _WRITE:
                counts = True
                meter = known[resource] if resource in known else self._look_up(resource)
                if meter is not None:
                    found[meter] = None
        if counts and principal:
            own = PRINCIPAL + principal
            meter = known[own] if own in known else self._look_up(own)
            if meter is not None:
                found[meter] = None
        return tuple(found)

    def begin(self, meters: Sequence[Meter], request_bytes: Callable[[], int]) -> None:
        """A call of these begins: take it, and its request. Raises QuotaExceeded if one has no room."""
        now_ms = self._monotonic_ms()
        for meter in meters:
            if (calls := meter.calls) is not None and calls.full_ms - now_ms > calls.spare_ms:
                raise self._refusal(meter, CALLS, calls.wait_ms(now_ms))
            if (of_bytes := meter.bytes) is not None and of_bytes.full_ms - now_ms > of_bytes.spare_ms:
                raise self._refusal(meter, BYTES, of_bytes.wait_ms(now_ms))
        size_bytes = -1
        for meter in meters:
            if (calls := meter.calls) is not None:
                calls.take(1, now_ms)
            if (of_bytes := meter.bytes) is not None:
                size_bytes = request_bytes() if size_bytes < 0 else size_bytes
                of_bytes.take(size_bytes, now_ms)

    def begin_many(self, meters: Sequence[Meter], calls: int, request_bytes: int) -> bool:
        """So many calls of these begin together: take them, and their requests. Returns False if one of them by itself
        might have to be refused, and then takes nothing."""
        now_ms = self._monotonic_ms()
        for meter in meters:
            if meter.calls is not None and not meter.calls.has(calls, now_ms):
                return False
            if meter.bytes is not None and not meter.bytes.has(request_bytes, now_ms):
                return False
        for meter in meters:
            if meter.calls is not None:
                meter.calls.take(calls, now_ms)
            if meter.bytes is not None:
                meter.bytes.take(request_bytes, now_ms)
        return True

    def give_back(self, meters: Iterable[Meter], calls: int, request_bytes: int) -> None:
        """Give back a part of what :meth:`begin_many` took: these calls begin by themselves, and count then."""
        now_ms = self._monotonic_ms()
        for meter in meters:
            if meter.calls is not None:
                meter.calls.take(-calls, now_ms)
            if meter.bytes is not None:
                meter.bytes.take(-request_bytes, now_ms)

    def check_room(self, demands: Iterable[Demand]) -> None:
        """Check the room for data that is to be added. Raises QuotaExceeded if there is no room for it."""
        meter = self.full_of(demands)
        if meter is not None:
            raise self._refusal(meter, STORED, STORED_DELAY_MS)

    def full_of(self, demands: Iterable[Demand]) -> Meter | None:
        """Return the first full meter of the targets to which data is to be added."""
        found = (self._look_up(resource) for _, resource in demands)
        return next((meter for meter in found if meter is not None and meter.is_full), None)

    def take_bytes(self, meters: Iterable[Meter], count: int) -> None:
        """They came, or were sent."""
        now_ms = 0.0
        for meter in meters:
            if meter.bytes is not None:
                now_ms = now_ms or self._monotonic_ms()
                meter.bytes.take(count, now_ms)

    def owed_ms(self, meters: Iterable[Meter]) -> float:
        """Return how long until all bytes that were taken are paid, in milliseconds."""
        now_ms = self._monotonic_ms()
        return max((each.bytes.wait_ms(now_ms) for each in meters if each.bytes is not None), default=0.0)

    def count(self, kind: str) -> int:
        """Quotas of such targets."""
        return sum(kind_of(target) == kind for target in self.by_target)

    def fullest(self) -> float | None:
        """Return the greatest part of a limit of stored bytes that is used; None if none was measured."""
        measured = [each for each in self.by_target.values() if each.quota.stored_bytes and each.used_bytes is not None]
        return max(((each.used_bytes or 0) / (each.quota.stored_bytes or 1) for each in measured), default=None)

    def _look_up(self, resource: str) -> Meter | None:
        if resource in self._by_resource:
            return self._by_resource[resource]
        if len(self._by_resource) >= _RESOURCES_MAX:
            self._by_resource.clear()
        name = resource
        if resource.startswith(_TABLE):
            name = DATABASE + resource[len(_TABLE) :].partition(".")[0]
        found = self._by_resource[resource] = self.by_target.get(Target(name))
        return found

    def _refusal(self, meter: Meter, limit: str, wait_ms: float) -> QuotaExceeded:
        quota = meter.quota
        meter.refused += 1
        counted = kind_of(quota.target), limit
        self.refusals[counted] = self.refusals.get(counted, 0) + 1
        most: int = getattr(quota, limit)
        used = "" if limit is not STORED else f"{meter.used_bytes} bytes are stored, "
        problem = f"the quota of {quota.target} is used up: {used}{limit} is {most}"
        return QuotaExceeded(problem, max(1, ceil(wait_ms)), resource=limit, limit=most, quota=quota.target)


def _meter(quota: Quota, before: Meter | None) -> Meter:
    if before is None:
        return Meter(quota)
    if before.quota == quota:
        return before
    changed = Meter(quota)
    changed.used_bytes = before.used_bytes
    return changed


NO_METERS: Final = Meters(lambda: 0.0)
"""The meters if there are no quotas."""
