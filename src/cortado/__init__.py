"""Cortado: a replicated, ordered key-value and document store.

The public face. ``from cortado import Client``, or ``AsyncClient``, is where an application starts;
``cortado.errors`` is what it catches. Every type that a public signature names is here, too. Names are loaded on first
use, so that importing :mod:`cortado.errors` in a Spark worker costs nothing.
"""

from typing import TYPE_CHECKING, Any

from cortado.store import client as _client
from cortado.version import __version__

if TYPE_CHECKING:
    from cortado.store.client import *  # noqa: F403

__all__ = ["__version__"]
__all__ += _client.__all__


def __getattr__(name: str) -> Any:
    if name in _client.__all__:
        return getattr(_client, name)
    raise AttributeError(f"module 'cortado' has no attribute {name!r}")


def __dir__() -> list[str]:
    # What a shell completes after "cortado.": nothing of it is loaded yet.
    return sorted({*globals(), *__all__})
