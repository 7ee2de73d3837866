"""The principal that a thing of the catalogue counts for: with roles on, each has a share of every bound.

A database, a table and a subject count for the principal that made them, a drop for the one that dropped. Below half of
a bound no principal can have more than a share (:func:`cortado.store.auth.owners.has_share`), so a principal's own are
counted above that alone: there may be ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cortado.store.auth.owners import check_share
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.keys.keyspace import meta_range


def count_databases_of(catalog: Catalog, principal: str) -> int:
    """Return how many databases count for a principal."""
    return sum(stored.decode_database(each).principal == principal for each in _payloads(catalog, "database"))


def count_tables_of(catalog: Catalog, principal: str) -> int:
    """Return how many tables count for a principal."""
    found = _payloads(catalog, "table", stored.field_of_table(principal=principal))
    return sum(stored.decode_table(each).principal == principal for each in found)


def count_subjects_of(catalog: Catalog, principal: str) -> int:
    """Return how many subjects count for a principal, those without a version included."""
    found = _payloads(catalog, "subject", stored.field_of_subject(principal))
    return sum(stored.decode_subject(each).principal == principal for each in found)


def count_dropped_by(catalog: Catalog, principal: str) -> int:
    """Return how many records of drops count for a principal. That is stored: there may be twenty thousand."""
    version = catalog.reader.get(stored.dropped_by_key(principal)) if principal else None
    return 0 if version is None else stored.decode_share(version.payload)


def check_share_of(
    catalog: Catalog, principal: str, what: str, own: Callable[[], int], total: int, limit: int, more: int = 1
) -> None:
    """Whether ``principal`` may have ``more``, beside its ``own``. Raises ResourceExhausted. See
    :func:`cortado.store.auth.owners.check_share`."""
    # Below half of the limit it has its share, however many are its own: they need not be counted.
    if 2 * (total + more - 1) >= limit and principal and not catalog.asker.is_open:
        asker = catalog.asker._replace(principal=principal)
        check_share(asker, what, own=own(), total=total, limit=limit, more=more)


def _payloads(catalog: Catalog, kind: str, holding: bytes = b"") -> Iterator[bytes]:
    payloads = (version.payload for _, version in catalog.reader.scan(*meta_range(kind)))
    return (each for each in payloads if holding in each)
