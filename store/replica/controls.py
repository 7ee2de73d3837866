"""Writes that change no key by a version of their own: the epoch, the ceiling of reads ahead, accepted losses, and
cancelled requests."""

from __future__ import annotations

from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import AcceptLoss, BumpEpoch, Evaluate, Evaluation, RaiseCeiling
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader

_NOTHING: Final = Mutations()


def epoch_after(from_epoch: int) -> Evaluate:
    """Begin the epoch after ``from_epoch``; refuse with InvalidArgument if that is not the current one."""

    def evaluate(_reader: Reader, commit_ts: Timestamp) -> Evaluation:
        if from_epoch != commit_ts.epoch:
            raise InvalidArgument("from_epoch", f"the current epoch is {commit_ts.epoch}", str(from_epoch))
        return Evaluation(_NOTHING, from_epoch + 1, BumpEpoch(from_epoch + 1))

    return evaluate


def higher_ceiling(ceiling: Timestamp) -> Evaluate:
    """Let reads ahead of the log be served up to ``ceiling``."""

    def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        return Evaluation(_NOTHING, None, RaiseCeiling(ceiling))

    return evaluate


def accepted_loss(loss: AcceptLoss) -> Evaluate:
    """Give up an item that is damaged on every replica."""

    def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        return Evaluation(_NOTHING, None, loss)

    return evaluate


def cancelled(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    """Do nothing, in the place of a request that never happens."""
    return Evaluation(_NOTHING, None)
