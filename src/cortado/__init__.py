"""Cortado: a replicated, ordered key-value and document store.

The public face. ``from cortado import Client``, or ``AsyncClient``, is where an application starts;
``cortado.errors`` is what it catches. Names are loaded on first use, so that importing :mod:`cortado.errors` in a
Spark worker costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient, Client
    from cortado.store.clock.timestamp import Timestamp

__all__ = ["AsyncClient", "Client", "Timestamp", "__version__"]

__version__ = "0.1.0"

_HOME_OF = {
    "AsyncClient": "cortado.store.client",
    "Client": "cortado.store.client",
    "Timestamp": "cortado.store.clock.timestamp",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'cortado' has no attribute {name!r}")
