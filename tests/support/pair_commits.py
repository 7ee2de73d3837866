"""Commits without a catalogue: operations on pairs alone."""

from __future__ import annotations

from collections.abc import Sequence

from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.operations import KvDelete, KvPut
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.operations import Commit, OnPairs


def evaluate_pairs(
    reader: Reader, commit_ts: Timestamp, namespace: str, operations: Sequence[KvPut | KvDelete]
) -> Evaluation:
    """Evaluate all operations at once."""
    commit = Commit([OnPairs(namespace, each) for each in operations])
    return evaluate_commit(reader, commit_ts, Catalog(reader, CatalogCache()), commit)
