"""Cortado: a replicated, ordered key-value and document store.

The public face. ``from cortado import Client``, or ``AsyncClient``, is where an application starts;
``cortado.errors`` is what it catches. Names are loaded on first use, so that importing :mod:`cortado.errors` in a
Spark worker costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cortado.version import __version__

if TYPE_CHECKING:
    from cortado.schema.values import Branch, Duration
    from cortado.store.client import (
        AsyncClient,
        AsyncTransaction,
        Changed,
        Client,
        Delete,
        Deleted,
        Index,
        Put,
        Resolved,
        Stale,
        Tls,
        Transaction,
    )
    from cortado.store.clock.timestamp import Timestamp

__all__ = [
    "AsyncClient",
    "AsyncTransaction",
    "Branch",
    "Changed",
    "Client",
    "Delete",
    "Deleted",
    "Duration",
    "Index",
    "Put",
    "Resolved",
    "Stale",
    "Timestamp",
    "Tls",
    "Transaction",
    "__version__",
]

_CLIENT = "cortado.store.client"
_HOME_OF = {
    "AsyncClient": _CLIENT,
    "AsyncTransaction": _CLIENT,
    "Branch": "cortado.schema.values",
    "Changed": _CLIENT,
    "Client": _CLIENT,
    "Delete": _CLIENT,
    "Deleted": _CLIENT,
    "Duration": "cortado.schema.values",
    "Index": _CLIENT,
    "Put": _CLIENT,
    "Resolved": _CLIENT,
    "Stale": _CLIENT,
    "Timestamp": "cortado.store.clock.timestamp",
    "Tls": _CLIENT,
    "Transaction": _CLIENT,
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'cortado' has no attribute {name!r}")


def __dir__() -> list[str]:
    # What a shell completes after "cortado.": nothing of it is loaded yet.
    return sorted({*globals(), *__all__})
