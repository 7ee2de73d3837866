"""The generation that a namespace's name stands for: its mark (:mod:`cortado.store.catalog.namespaces`)."""

from __future__ import annotations

from functools import lru_cache

from cortado.store.catalog import stored
from cortado.store.keys.keyspace import namespace_key
from cortado.store.keys.names import check_namespace
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Reader


def generation_of(reader: Reader, namespace: str) -> int:
    """Return the generation in the mark, 0 if there is no mark. Raises InvalidArgument, DataLoss."""
    version = reader.get(_mark_of(namespace))
    return 0 if version is None else stored.decode_generation(version.payload)


@lru_cache(maxsize=1_024)
def _mark_of(namespace: str) -> LogicalKey:
    return namespace_key(check_namespace(namespace))
