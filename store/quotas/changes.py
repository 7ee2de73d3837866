"""Setting and removing quotas. A change is evaluated like any write, and rewrites the one value that holds all
quotas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cortado.errors import NotFound, TooLarge
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.quotas.quota import Quota, check_target
from cortado.store.quotas.stored import QUOTAS_KEY, encode_quotas, quotas_of

QUOTAS_MAX: Final = 1_000


def set_quota(quota: Quota) -> Evaluate:
    """``quota`` in the place of the one that its target had. Raises InvalidArgument; evaluating, TooLarge."""
    quota.check()

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        found = {**quotas_of(reader), quota.target: quota}
        if len(found) > QUOTAS_MAX:
            raise TooLarge("quota", f"there may be at most {QUOTAS_MAX}", str(len(found)), len(found), QUOTAS_MAX)
        return _changed(found.values())

    return evaluate


def remove_quota(target: str) -> Evaluate:
    """Away with it. Raises InvalidArgument; evaluating, NotFound."""
    checked = check_target(target)

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        found = dict(quotas_of(reader))
        if found.pop(checked, None) is None:
            raise NotFound("quota", checked)
        return _changed(found.values())

    return evaluate


def _changed(quotas: Iterable[Quota]) -> Evaluation:
    mutations = Mutations()
    mutations.put(QUOTAS_KEY, encode_quotas(quotas))
    return Evaluation(mutations, None)
